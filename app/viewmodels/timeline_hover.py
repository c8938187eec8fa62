"""One line about what is under the pointer."""

from typing import Protocol

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.timeline_codes import NAMES, is_work
from gptscope.app.viewmodels.timeline_counters import CounterLane
from gptscope.app.viewmodels.timeline_model import Timeline


class HasCounter(Protocol):
    """A row of the canvas that shows a counter."""

    @property
    def counter(self) -> CounterLane: ...


def hover_text(timeline: Timeline, row: int | None, time: float, counter: HasCounter | None) -> str:
    """Name, length and moment of an event, or the value of a counter, or the moment alone."""
    moment = fmt.duration(max(time, timeline.first) / 1e9)
    if row is not None:
        start, end = timeline.times(row)
        kind = NAMES[timeline.codes[row]] if row >= 0 and is_work(int(timeline.codes[row])) else ""
        length = fmt.duration((end - start) / 1e9) if row >= 0 else "instant"
        return "  ".join(
            part for part in (timeline.label(row), length, kind, f"at {fmt.duration(start / 1e9)}") if part
        )
    if counter is not None:
        value = counter.counter.value_at(time)
        if value is not None:
            return f"{counter.counter.name}  {counter.counter.text(value)}  at {moment}"
    return f"at {moment}"
