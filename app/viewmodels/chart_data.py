"""What a chart shows, as plain values: axes, lines, bars, bands, regions, points and labels. Knows no Qt."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SpotTone = Literal["", "good", "warn", "bad", "baseline"]
Role = Literal["current", "baseline", "context", "peak", "warn", "bad", "other", "faint"]


def floats(values: Sequence[float] = ()) -> Floats:
    """A float64 column."""
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis. Ranges are in data units; `ticks` are (value, text)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False
    title: str = ""
    """For screen readers and exported files; the panel's header shows the unit."""
    named: bool = False
    """Write the title below the ticks, too."""

    def position(self, value: float) -> float:
        """0 at `low`, 1 at `high`; NaN stays NaN, a value at or below zero on a log axis is NaN."""
        if self.log:
            if value <= 0:
                return math.nan
            return (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def value(self, position: float) -> float:
        """Inverse of `position`."""
        if self.log:
            span = math.log10(self.high) - math.log10(self.low)
            return float(10 ** (math.log10(self.low) + position * span))
        return self.low + position * (self.high - self.low)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve; NaN in `y` breaks it."""

    name: str
    x: Floats
    y: Floats
    role: Role = "current"
    end_label: str = ""
    end_note: str = ""
    live: bool = False
    """Draw a filled dot on the newest sample."""

    def at(self, x: float) -> tuple[float, float] | None:
        """The sample nearest to `x` that is not NaN, or None when there is none."""
        if self.x.size == 0:
            return None
        index = int(np.searchsorted(self.x, x))
        best: tuple[float, float] | None = None
        for i in range(max(index - 2, 0), min(index + 2, self.x.size)):
            near = best is None or abs(self.x[i] - x) < abs(best[0] - x)
            if near and math.isfinite(self.y[i]):
                best = (float(self.x[i]), float(self.y[i]))
        return best


@dataclass(frozen=True, kw_only=True)
class Level:
    """A horizontal line over the whole width, with an optional band around it."""

    y: float
    label: str
    role: Role
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Region:
    """A vertical stretch with a meaning: `hatched` = not counted, `warn` = disturbed."""

    start: float
    end: float
    kind: Literal["hatched", "warn"]
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Bars:
    """A histogram: `edges` has one value more than `heights`. The baseline is drawn as a dashed outline."""

    name: str
    edges: Floats
    heights: Floats
    role: Role = "current"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A vertical dotted line with a label at its top."""

    x: float
    label: str
    role: Role = "context"
    line: bool = True


@dataclass(frozen=True, kw_only=True)
class Point:
    """One dot; `size` is its radius in pixels."""

    x: float
    y: float
    size: float
    category: str
    label: str
    key: str
    baseline: bool = False


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A labelled symbol for one variant; `x_low` and `x_high` are the ends of its interval, None without one."""

    x: float
    y: float
    label: str
    tip: str
    key: str
    tone: SpotTone = ""
    shape: Literal["circle", "triangle", "square"] = "circle"
    x_low: float | None = None
    x_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class ChartData:
    """Everything one chart draws."""

    x_axis: Axis
    y_axis: Axis
    lines: tuple[Line, ...] = ()
    levels: tuple[Level, ...] = ()
    regions: tuple[Region, ...] = ()
    bars: tuple[Bars, ...] = ()
    marks: tuple[Mark, ...] = ()
    points: tuple[Point, ...] = ()
    spots: tuple[Spot, ...] = ()
    empty: str = ""
    """One sentence shown instead of a chart while there is nothing to draw."""
    summary: str = field(default="")
    """The chart in words, for screen readers."""


def chart_csv(chart: ChartData) -> str:
    """The chart's data as CSV with one row per value: series, x, y (bars: x = left edge, x_end = right edge)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["series", "x", "x_end", "y"])
    for line in chart.lines:
        for x, y in zip(line.x.tolist(), line.y.tolist(), strict=True):
            if math.isfinite(y):
                writer.writerow([line.name, repr(x), "", repr(y)])
    for bars in chart.bars:
        for left, right, height in zip(bars.edges[:-1].tolist(), bars.edges[1:].tolist(), bars.heights, strict=True):
            writer.writerow([bars.name, repr(left), repr(right), repr(float(height))])
    for level in chart.levels:
        writer.writerow([level.label, "", "", repr(level.y)])
    for point in chart.points:
        writer.writerow([point.label, repr(point.x), "", repr(point.y)])
    for spot in chart.spots:
        writer.writerow([spot.label, repr(spot.x), "", repr(spot.y)])
    for region in chart.regions:
        writer.writerow([region.label.replace("\n", " ") or region.kind, repr(region.start), repr(region.end), ""])
    return out.getvalue()
