"""An error in anything that Qt calls is logged and answered for: left to itself it could end the program."""

import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication, QWidget

import gptscope.app.gui
from gptscope.app.gui.widgets.guarded import guarded, guarded_as

NOT_VIRTUAL = {"setTabVisible"}
"""Methods that hide one of Qt's which only Python calls."""


def classes_of_the_window() -> Iterator[type]:
    for module in pkgutil.walk_packages(gptscope.app.gui.__path__, "gptscope.app.gui."):
        found = importlib.import_module(module.name)
        yield from (one for one in vars(found).values() if inspect.isclass(one) and one.__module__ == module.name)


def overrides() -> Iterator[tuple[str, types.FunctionType]]:
    """Every method of ours with the name of one that a Qt class of ours inherits."""
    for made in classes_of_the_window():
        theirs = [base for base in made.__mro__ if base.__module__.startswith("PySide6")]
        for name, method in vars(made).items():
            ours = isinstance(method, types.FunctionType) and not name.startswith("__") and name not in NOT_VIRTUAL
            if ours and any(hasattr(base, name) for base in theirs):
                yield f"{made.__module__}.{made.__name__}.{name}", method


def test_every_override_of_a_qt_method_is_guarded() -> None:
    found = dict(overrides())
    names = {name.rpartition(".")[2] for name in found}
    assert {"paintEvent", "paint", "sizeHint", "resizeEvent", "eventFilter", "data", "closeEvent"} <= names
    guard = guarded_as(None)(lambda: None).__code__
    assert [name for name, method in found.items() if method.__code__ is not guard] == []


def test_an_event_that_fails_is_logged_and_the_window_lives(
    qapp: QApplication, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(QWidget):
        @guarded
        def resizeEvent(self, _event: object) -> None:  # noqa: N802
            raise ZeroDivisionError

        @guarded_as(QSize(7, 9))
        def sizeHint(self) -> QSize:  # noqa: N802
            raise ZeroDivisionError

    broken = Broken()
    broken.show()
    qapp.processEvents()
    broken.adjustSize()
    qapp.processEvents()
    assert "resizeEvent failed" in caplog.text
    assert "sizeHint failed" in caplog.text
    assert broken.sizeHint() == QSize(7, 9)
    assert broken.isVisible()
    broken.close()
    caplog.clear()
