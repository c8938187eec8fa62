"""What is seen and chosen on the timeline; minimap, lanes, inspector and tables share it."""

from PySide6.QtCore import QObject, Signal

from gptscope.app.viewmodels.timeline_axis import Axis
from gptscope.app.viewmodels.timeline_links import Links, links_of
from gptscope.app.viewmodels.timeline_model import Timeline

_EMPTY_SPAN = 1e6


class TimelineState(QObject):
    """One opened trace as it is looked at."""

    opened = Signal()
    moved = Signal()
    chosen = Signal()
    range_changed = Signal()
    marks_changed = Signal()
    hovered = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.timeline: Timeline | None = None
        self.axis = Axis.whole(0.0, _EMPTY_SPAN)
        self.row: int | None = None
        self.links = Links(())
        self.range: tuple[float, float] | None = None
        self.marks: tuple[float, ...] = ()
        self.measuring = False

    def open(self, timeline: Timeline | None) -> None:
        """Look at another trace, all of it."""
        self.timeline = timeline
        first, last = (timeline.first, timeline.last) if timeline is not None else (0.0, _EMPTY_SPAN)
        self.axis = Axis.whole(first, last)
        self.row, self.links, self.range, self.marks, self.measuring = None, Links(()), None, (), False
        self.opened.emit()

    def look(self, axis: Axis) -> None:
        """See another part of the time."""
        if axis != self.axis:
            self.axis = axis
            self.moved.emit()

    def fit(self) -> None:
        """See the selected range; when that is seen already or none is selected, the whole trace."""
        if self.range is not None:
            wanted = self.axis.to(*self.range)
            if wanted != self.axis:
                self.look(wanted)
                return
        self.look(self.axis.widest())

    def choose(self, row: int | None, *, show: bool = False) -> None:
        """Choose an event; `show` moves the view to it when it is not well seen."""
        timeline = self.timeline
        if timeline is None:
            return
        if show and row is not None:
            start, end = timeline.times(row)
            inside = start >= self.axis.start and end <= self.axis.end
            if not inside or end - start < 0.004 * self.axis.length:
                self.look(self.axis.centred(start, end, 0.06))
        if row != self.row:
            self.row = row
            self.links = links_of(timeline, row) if row is not None else Links(())
        self.chosen.emit()

    def select(self, selected: tuple[float, float] | None) -> None:
        """Select a range of time: of the program's, since nothing is counted outside."""
        if selected is not None and self.timeline is not None:
            low, high = max(selected[0], 0.0), min(selected[1], self.timeline.span)
            selected = (low, high) if low < high else None
        if selected != self.range:
            self.range = selected
            self.range_changed.emit()

    def mark(self, time: float) -> None:
        """Set the first or second mark; a third begins anew."""
        self.marks = (time,) if len(self.marks) != 1 else (self.marks[0], time)
        self.marks_changed.emit()

    def measure(self, *, on: bool) -> None:
        """Let clicks set marks, or stop that and take the marks away."""
        self.measuring = on
        if not on:
            self.marks = ()
        self.marks_changed.emit()
