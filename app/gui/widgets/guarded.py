"""Keeps an error in what Qt calls (painting, events, size hints, models) from ending the program."""

import functools
import logging
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

logger = logging.getLogger(__name__)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
NOTHING: object = None
"""What an item model answers for a role that it does not have."""


def guarded(method: Callable[_Given, None]) -> Callable[_Given, None]:
    """For every override of a Qt method that answers nothing: an error that left it could crash Qt, so it is logged."""
    return guarded_as(None)(method)


def guarded_as(instead: _Answer) -> Callable[[Callable[_Given, _Answer]], Callable[_Given, _Answer]]:
    """Like `guarded` for methods whose answer Qt needs; `instead` is the answer after an error."""

    def guard(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
        @functools.wraps(method)
        def called(*given: _Given.args, **named: _Given.kwargs) -> _Answer:
            try:
                return method(*given, **named)
            except Exception as error:
                logger.exception("%s.%s failed", type(given[0]).__name__, method.__name__)
                traceback.clear_frames(error.__traceback__)  # a painter in one of them would go on painting
                return instead

        return called

    return guard
