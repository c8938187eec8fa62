"""Everything about one event, and the sums of a selected range, as lines of an inspector."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import category_title
from gptscope.app.viewmodels.timeline_codes import NAMES, is_work
from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.app.viewmodels.timeline_work import RangeSums
from gptscope.profiling.printable import printable
from gptscope.profiling.trace.kernels import shapes_text
from gptscope.profiling.trace.op_inputs import all_tensors

Lines = tuple[tuple[str, str], ...]
_MOST_ARGS = 40
_LONGEST_VALUE = 300
_MANY = 1000


def event_lines(timeline: Timeline, row: int) -> Lines:
    """Name first; then what the trace says about the event, without its arguments."""
    start = timeline.times(row)[0]
    trace, linked = timeline.trace, timeline.linked
    at = fmt.duration(start / 1e9)
    if row < 0:
        return (("Event", timeline.label(row)), ("Kind", "instant"), ("Begins at", at))
    lines = [("Event", timeline.label(row)), ("Duration", _duration(timeline, row))]
    lines.append(("Begins at", f"{at} ({fmt.fixed(start, 0)} ns)"))
    lines.append(("Kind", trace.category_of(row) or "n/a"))
    code = int(timeline.codes[row])
    if is_work(code):
        lines.append(("Category", category_title(NAMES[code])))
    places = np.flatnonzero(linked.work == row)
    owner = int(linked.owner[places[0]]) if places.size else row if bool(trace.operators()[row]) else -1
    if owner >= 0:
        module = linked.nesting.modules[linked.nesting.module[owner]]
        if module:
            lines.append(("Module", module))
        call = linked.inputs.of(owner)
        shapes = shapes_text(call, 1)
        if shapes:
            types = dict.fromkeys(tensor.dtype for tensor in all_tensors(call or []) if tensor.dims)
            lines.append(("Shapes", shapes))
            if types:
                lines.append(("Types", ", ".join(types)))
    if owner == row and linked.nesting.self_ns[row] != trace.duration_ns[row]:
        lines.append(("Own time", fmt.duration(float(linked.nesting.self_ns[row]) / 1e9)))
    if places.size and linked.launch[places[0]] >= 0:
        delay = float(trace.start_ns[row] - trace.start_ns[linked.launch[places[0]]])
        lines.append(("After its launch", fmt.duration(delay / 1e9)))
    elif places.size:
        lines.append(("Launch", "n/a: not recorded"))
    if trace.moved_bytes[row] >= 0 and trace.duration_ns[row] > 0:
        moved = float(trace.moved_bytes[row])
        rate = moved / (float(trace.duration_ns[row]) / 1e9)
        lines.append(("Moved", f"{fmt.quantity(moved, 'bytes')}, {fmt.quantity(rate, 'bandwidth')}"))
    lines.append(_among(timeline, row))
    name = trace.name_of(row)
    if name != timeline.label(row):
        lines.append(("Whole name", name))
    return tuple((title, printable(text)) for title, text in lines)


def _duration(timeline: Timeline, row: int) -> str:
    trace = timeline.trace
    if trace.unfinished[row]:
        return "n/a: no end was recorded; drawn to the end of the trace"
    return fmt.duration(float(trace.duration_ns[row]) / 1e9)


def _among(timeline: Timeline, row: int) -> tuple[str, str]:
    """Where its duration stands among the events of its name."""
    trace = timeline.trace
    same = trace.duration_ns[(trace.name == trace.name[row]) & ~trace.unfinished]
    if same.size < 2 or trace.unfinished[row]:
        return ("Of this name", fmt.count(int(same.size)))
    place = float((same < trace.duration_ns[row]).sum() + ((same == trace.duration_ns[row]).sum() - 1) / 2)
    percentile = round(100 * place / (same.size - 1))
    median = fmt.duration(float(np.median(same)) / 1e9)
    return (f"Among {fmt.count(int(same.size))} of its name", f"p{percentile}, median {median}")


def argument_lines(args: Mapping[str, Any]) -> Lines:
    """Arguments as the file has them."""
    lines = []
    for name, value in list(args.items())[:_MOST_ARGS]:
        text = printable(str(value))
        lines.append((printable(str(name)), text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"))
    if len(args) > _MOST_ARGS:
        lines.append(("", f"and {len(args) - _MOST_ARGS} more"))
    return tuple(lines)


def range_lines(sums: RangeSums) -> tuple[tuple[str, str, str, str], ...]:
    """Per kind of work: category, calls, time, share of the range; gaps last."""
    length = max(sums.length_ns, 1)
    short = max((one.calls for one in sums.categories), default=0) >= _MANY or sums.gaps >= _MANY
    lines = [
        (one.category, _counted(one.calls, "call", short=short), fmt.duration(one.ns / 1e9), fmt.share(one.ns / length))
        for one in sums.categories
    ]
    gaps = _counted(sums.gaps, "gap", short=short) if sums.gap_ns else "no gaps"
    lines.append(("", gaps, fmt.duration(sums.gap_ns / 1e9), fmt.share(sums.gap_ns / length)))
    return tuple(lines)


def _counted(count: int, what: str, *, short: bool) -> str:
    """Large numbers leave no room for the word."""
    return fmt.count(count) if short else f"{fmt.count(count)} {what}{'s' if count != 1 else ''}"
