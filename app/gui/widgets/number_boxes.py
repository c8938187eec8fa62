"""Spin boxes: the wheel passes through them, numbers stand off the border, small ones can be typed as 2e-5."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSpinBox

from gptscope.app.gui.widgets.guarded import guarded, guarded_as

_INSET = 5
"""Pixels: a style sheet's padding does not reach the text of a spin box."""
_SMALLEST_DIGIT = 9
"""Digits after the point that are kept of a number written with an exponent."""
_LETTERS = frozenset("0123456789.eE+-")


class _Still:
    """Beside a class of spin boxes: scrolling must not change what the pointer happens to pass."""

    def __init__(self) -> None:
        super().__init__()
        assert isinstance(self, QAbstractSpinBox)
        self.lineEdit().setTextMargins(_INSET, 0, 0, 0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # not by the wheel

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class WholeBox(_Still, QSpinBox):
    """A whole number."""


class NumberBox(_Still, QDoubleSpinBox):
    """A number with digits after the point."""


class ExponentBox(NumberBox):
    """Shows and takes numbers as people write small ones: 2e-05, 0.0003."""

    def __init__(self) -> None:
        super().__init__()
        self.setDecimals(_SMALLEST_DIGIT)

    @guarded_as("")
    def textFromValue(self, value: float) -> str:
        return f"{value:g}"

    @guarded_as(0.0)
    def valueFromText(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return self.value()

    @guarded_as((QValidator.State.Invalid, "", 0))
    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        return self._state_of(text), text, position

    def _state_of(self, text: str) -> QValidator.State:
        if not set(text) <= _LETTERS:
            return QValidator.State.Invalid
        try:
            possible = self.minimum() <= float(text) <= self.maximum()
        except ValueError:  # "2e-", on the way to a number
            possible = False
        return QValidator.State.Acceptable if possible else QValidator.State.Intermediate

    @guarded
    def stepBy(self, steps: int) -> None:
        """By a factor: 1e-05, 2e-05, 5e-05, 1e-04."""
        for _ in range(abs(steps)):
            self.setValue(_neighbour(self.value(), up=steps > 0))


def _neighbour(value: float, *, up: bool) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    steps = [float(f"{digit}e{power}") for power in range(-_SMALLEST_DIGIT, 1) for digit in (1, 2, 5)]
    beyond = [one for one in steps if (one > value * 1.0001 if up else one < value * 0.9999)]
    return (min(beyond) if up else max(beyond)) if beyond else value
