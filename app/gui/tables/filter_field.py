"""The field above tables that keeps only rows with certain words."""

from PySide6.QtWidgets import QLineEdit


def filter_field(name: str, width: int) -> QLineEdit:
    """A field for words; `name` is what a screen reader says."""
    field = QLineEdit()
    field.setPlaceholderText("Filter kernels")
    field.setAccessibleName(name)
    field.setClearButtonEnabled(True)
    field.setFixedWidth(width)
    field.setFixedHeight(26)
    return field
