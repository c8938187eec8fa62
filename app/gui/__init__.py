"""The Qt window: a client of the engine that draws records. Knows no torch."""
