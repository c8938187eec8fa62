"""Opens a trace, or the part of its time that `--range` names."""

import math
from pathlib import Path

from gptscope.app.cli.failing import USAGE, CommandError
from gptscope.app.cli.options import UsageError
from gptscope.profiling.trace import TraceError, open_trace
from gptscope.profiling.trace.analysis import Linked

_NS_PER_MS = 1e6
RangeMs = tuple[float, float]


def open_linked(path: Path, range_ms: RangeMs | None) -> Linked:
    """Open a trace, or a range of it.

    Raises:
        CommandError: It is no trace, or nothing of it lies in the range.
    """
    try:
        trace = open_trace(path)
    except TraceError as error:
        raise CommandError(str(error)) from error
    linked = Linked.of(trace)
    return linked if range_ms is None else _limited(linked, range_ms, path)


def parse_range(text: str | None) -> RangeMs | None:
    """`A:B` in milliseconds; without A from the beginning, without B to the end.

    Raises:
        UsageError: It is no range.
    """
    if text is None:
        return None
    start, colon, end = text.partition(":")
    try:
        found = (float(start or -math.inf), float(end or math.inf))
    except ValueError:
        found = (math.nan, math.nan)
    if not colon or not found[0] < found[1]:
        raise UsageError(f"--range {text} is no range: give A:B in milliseconds from the beginning, such as 100:120.")
    return found


def _limited(linked: Linked, range_ms: RangeMs, path: Path) -> Linked:
    first, last = linked.span_ns
    length_ms = (last - first) / _NS_PER_MS
    if range_ms[0] <= 0 and range_ms[1] >= length_ms:
        return linked  # all of it, with events of no length at its very end
    if range_ms[0] >= length_ms or range_ms[1] <= 0:
        covers = f"it covers 0 to {length_ms:.6g} ms"
        raise CommandError(
            f"Nothing of {path} lies in the range: {covers}. Give --range A:B inside of that.", code=USAGE
        )
    start = first + round(max(range_ms[0], 0.0) * _NS_PER_MS)
    end = first + round(range_ms[1] * _NS_PER_MS) if range_ms[1] < length_ms else last
    return Linked.of(linked, (start, max(end, start + 1)))
