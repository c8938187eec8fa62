"""The part of the time axis that is seen: zoom, pan, pixels, round ticks."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.app.viewmodels import formatting as fmt

NARROWEST_NS = 20.0
"""As far as one can zoom in: traces have whole nanoseconds."""
_MARGIN = 0.02
_UNITS = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
_LONGEST, _SMALLEST_STEP = 10_000, 0.001
"""Labels stay below the one and have at most three decimals, by the other."""


@dataclass(frozen=True)
class Axis:
    """A window on a trace whose rows lie between `first` and `last`; times in ns from the program's beginning."""

    first: float
    last: float
    start: float
    end: float

    @classmethod
    def whole(cls, first: float, last: float) -> "Axis":
        """All of a trace with a little room on both sides."""
        room = (last - first) * _MARGIN / 2
        return cls(first, last, first - room, last + room)

    def widest(self) -> "Axis":
        """All of the same trace."""
        return Axis.whole(self.first, self.last)

    @property
    def length(self) -> float:
        """How much time is seen."""
        return self.end - self.start

    @property
    def is_whole(self) -> bool:
        """Whether all of the trace is seen."""
        return self.start <= self.first and self.end >= self.last

    def to(self, start: float, end: float) -> "Axis":
        """Another window, not narrower or wider than makes sense and never off the trace."""
        widest = self.widest()
        length = min(max(end - start, NARROWEST_NS), widest.length)
        centre = (start + end) / 2
        start = min(max(centre - length / 2, widest.start), widest.end - length)
        return Axis(self.first, self.last, start, start + length)

    def zoomed(self, factor: float, around: float) -> "Axis":
        """Zoom in by a factor above 1, out below it; the moment `around` stays where it is."""
        left = (around - self.start) / factor
        right = (self.end - around) / factor
        return self.to(around - left, around + right)

    def moved(self, share: float) -> "Axis":
        """Move to the right by a share of what is seen."""
        step = self.length * share
        return self.to(self.start + step, self.end + step)

    def centred(self, start: float, end: float, share: float = 0.25) -> "Axis":
        """Show an event: as wide a view as now where it fits well, else so that it takes this share of the view."""
        length = self.length
        if end - start > 0.9 * length or end - start < length * 1e-3:
            length = max(end - start, NARROWEST_NS) / share
        centre = (start + end) / 2
        return self.to(centre - length / 2, centre + length / 2)

    def x(self, time: float, width: float) -> float:
        """Pixel of a moment on an axis so many pixels wide."""
        return (time - self.start) / self.length * width

    def time(self, x: float, width: float) -> float:
        """Moment at a pixel."""
        return self.start + x / max(width, 1) * self.length

    def edges(self, pixels: int) -> npt.NDArray[np.float64]:
        """Moments of the pixels' edges."""
        return np.linspace(self.start, self.end, pixels + 1)


@dataclass(frozen=True)
class Ticks:
    """Round moments with their labels; `unit` says what the labels count, and from where."""

    times: tuple[float, ...]
    labels: tuple[str, ...]
    unit: str


def ticks(axis: Axis, most: int) -> Ticks:
    """At most so many ticks on 1, 2 or 5 times a power of ten; long labels count from a round moment."""
    rough = axis.length / max(most, 1)
    power = 10.0 ** math.floor(math.log10(max(rough, 1e-3)))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    farthest = max(abs(axis.start), abs(axis.end))
    # The smallest unit with short labels; where a step is too small for it, labels count from a moment before the view.
    factor, unit = next(((f, u) for f, u in _UNITS if farthest < f * _LONGEST and step < f * 1000), _UNITS[-1])
    base = 0.0
    if step < factor * _SMALLEST_STEP:
        base = math.floor(axis.start / (step * 1000)) * step * 1000
        factor, unit = next((f, u) for f, u in _UNITS if axis.end - base < f * _LONGEST)
    first = math.ceil((axis.start - base) / step)
    count = math.floor((axis.end - base) / step) - first + 1
    offsets = [(first + i) * step for i in range(max(count, 0))]
    decimals = max(0, -math.floor(math.log10(step / factor) + 1e-9))
    labels = tuple(fmt.fixed(offset / factor, decimals) for offset in offsets)
    return Ticks(tuple(base + offset for offset in offsets), labels, f"{unit} after {_exact(base)}" if base else unit)


def _exact(time: float) -> str:
    """A round moment in the largest unit that keeps all its figures short."""
    factor, unit = next(((f, u) for f, u in reversed(_UNITS) if abs(time) >= f), _UNITS[0])
    text = f"{time / factor:.9f}".rstrip("0").rstrip(".")
    return f"{text} {unit}"
