"""The flame chart: rows of lanes, painter with level of detail, minimap, mouse and keys."""
