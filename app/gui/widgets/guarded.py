"""Keeps an error in what Qt calls while it paints from ending the program."""

import functools
import logging
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

logger = logging.getLogger(__name__)
_Self = TypeVar("_Self")
_Given = ParamSpec("_Given")


def guarded(paint: Callable[Concatenate[_Self, _Given], None]) -> Callable[Concatenate[_Self, _Given], None]:
    """For every `paintEvent`, and `paint` of a delegate: an exception that left it would crash Qt, so it is logged."""

    @functools.wraps(paint)
    def painted(self: _Self, *given: _Given.args, **named: _Given.kwargs) -> None:
        try:
            paint(self, *given, **named)
        except Exception:
            logger.exception("%s could not be drawn", type(self).__name__)

    return painted
