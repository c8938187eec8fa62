"""Keeps an error in what Qt calls while it paints from ending the program."""

import functools
import logging
import traceback
from collections.abc import Callable
from typing import Any, TypeVar, cast

logger = logging.getLogger(__name__)
_Paint = TypeVar("_Paint", bound=Callable[..., None])


def guarded(paint: _Paint) -> _Paint:
    """For every `paintEvent`, and `paint` of a delegate: an exception that left it would crash Qt, so it is logged."""

    @functools.wraps(paint)
    def painted(self: object, *given: Any, **named: Any) -> None:
        try:
            paint(self, *given, **named)
        except Exception as error:
            logger.exception("%s could not be drawn", type(self).__name__)
            traceback.clear_frames(error.__traceback__)  # a painter in one of them would go on painting

    return cast("_Paint", painted)
