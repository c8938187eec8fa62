"""Lanes and counters as one picture of device pixels, made with numpy; labels are put on it afterwards."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor, QImage

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.timeline.rows import COUNTER, GAP, LANE, CounterRow, LaneRow, Rows
from gptscope.app.viewmodels.timeline_axis import Axis
from gptscope.app.viewmodels.timeline_codes import CONTAINER, STEP, UNFINISHED, WAITING
from gptscope.app.viewmodels.timeline_counters import counter_columns
from gptscope.app.viewmodels.timeline_pixels import Columns, columns, wide_events
from gptscope.profiling.trace.categories import CATEGORIES

Pixels = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]

WIDE = 4
"""From so many pixels on an event has edges of its own."""
LABELLED = 44
"""From so many pixels on it has a label."""
_INSIDE_CONTAINER, _INSIDE_STEP, _OUTLINE = UNFINISHED + 1, UNFINISHED + 2, UNFINISHED + 3
_SEAM = 0.5
"""Ink at the right edge of a wide event, so that neighbours of one colour can be told apart."""


@dataclass(frozen=True)
class Wide:
    """Events of one lane that are wide enough for edges, in pixels of the canvas that may lie outside the view."""

    row: LaneRow
    places: Int64
    left: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]


class Palette:
    """Colours of the codes in one theme, as floats to blend with."""

    def __init__(self, theme: Theme) -> None:
        ground = _rgb(theme.color("bg1"))
        fills = [_rgb(theme.category(category)) for category in CATEGORIES]
        ctl, t3, bg3, bg4 = (_rgb(theme.color(token)) for token in ("ctl", "t3", "bg3", "bg4"))
        special = {
            CONTAINER: 0.7 * ctl + 0.3 * bg3,
            STEP: 0.8 * ctl + 0.2 * bg4,
            WAITING: 0.45 * t3 + 0.55 * ground,
            UNFINISHED: 0.6 * ctl + 0.4 * ground,
            _INSIDE_CONTAINER: bg3,
            _INSIDE_STEP: bg4,
            _OUTLINE: ctl,
        }
        self.ground: Floats = ground
        self.fills: Floats = np.array([*fills, *(special[code] for code in sorted(special))], np.float32)
        self.hatch = _packed(t3[None])[0]
        self.line = _packed(_rgb(theme.color("line"))[None])[0]
        self.grid = _packed(_rgb(theme.color("grid"))[None])[0]
        self.counter = _packed((0.16 * t3 + 0.84 * ground)[None])[0]
        self.counter_line = _packed(_rgb(theme.color("t2"))[None])[0]
        self.blank = _packed(ground[None])[0]


def _rgb(colour: QColor) -> Floats:
    return np.array([colour.red(), colour.green(), colour.blue()], np.float32)


def _packed(rgb: Floats) -> Pixels:
    whole = (rgb + 0.5).astype(np.uint32)
    packed = (whole[..., 0] << 16) | (whole[..., 1] << 8) | whole[..., 2] | 0xFF000000
    return packed.astype(np.uint32)


@dataclass
class Picture:
    """The picture with what labels and outlines need."""

    image: QImage
    wide: list[Wide]
    pixels: Pixels  # the image's memory


def draw(
    rows: Rows, axis: Axis, palette: Palette, size: tuple[int, int], scroll: int, ratio: float, grid: tuple[float, ...]
) -> Picture:
    """Draw what is seen.

    Args:
        rows: All lanes.
        axis: The time that is seen.
        palette: Colours.
        size: Width and height in logical pixels.
        scroll: Logical pixels that are scrolled away at the top.
        ratio: Device pixels per logical pixel.
        grid: Moments of the vertical grid lines.
    """
    width, height = (max(round(length * ratio), 1) for length in size)
    pixels = np.full((height, width), palette.blank, np.uint32)
    for time in grid:
        x = int(axis.x(time, width))
        if 0 <= x < width:
            pixels[:, x] = palette.grid
    for group in rows.groups:
        y = round((group.top + group.height - scroll) * ratio) - 1
        if 0 <= y < height:
            pixels[y, :] = palette.line
    edges = axis.edges(width)
    wide = []
    seen = [row for row in rows.lanes if row.top + LANE > scroll and row.top < scroll + size[1]]
    for row in seen:
        shown = columns(row.lane, edges)
        found = wide_events(row.lane, shown, WIDE * axis.length / size[0])
        scale = size[0] / axis.length
        left, right = (row.lane.start[found] - axis.start) * scale, (row.lane.end[found] - axis.start) * scale
        wide.append(Wide(row, found, left, right))
        top, bottom = round((row.top - scroll) * ratio), round((row.top - scroll + LANE - GAP) * ratio)
        _draw_lane(pixels, shown, wide[-1], palette, top, bottom, ratio)
    for counter in rows.counters:
        if counter.top + COUNTER > scroll and counter.top < scroll + size[1]:
            _draw_counter(pixels, counter, edges, palette, scroll, ratio)
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    return Picture(image, wide, pixels)


def _draw_lane(
    pixels: Pixels, shown: Columns, wide: Wide, palette: Palette, top: int, bottom: int, ratio: float
) -> None:
    """One lane: every row of pixels is the same but the outlines of containers."""
    width = pixels.shape[1]
    touched = shown.touched
    if not touched.any():
        return
    ink, code = shown.ink.copy(), shown.code.copy()
    rim = None
    if wide.places.size:
        left = np.clip(np.floor(wide.left * ratio).astype(np.int64), 0, width)
        right = np.clip(np.ceil(wide.right * ratio).astype(np.int64), 0, width)
        kinds = wide.row.lane.code[wide.places]
        boxed = (kinds == CONTAINER) | (kinds == STEP)
        inside = _covered(left[boxed], right[boxed], width)
        last = right[wide.right * ratio <= width] - 1
        if inside.any():
            code[inside & (code == CONTAINER)] = _INSIDE_CONTAINER
            code[inside & (code == STEP)] = _INSIDE_STEP
            ink[inside] = 1.0
            rim = code.copy()
            rim[inside] = _OUTLINE
            edge = np.concatenate((left[boxed & (wide.left >= 0)], right[boxed & (wide.right * ratio <= width)] - 1))
            edge = edge[(edge >= 0) & (edge < width)]
            code[edge] = _OUTLINE
        seams = last[(last >= 0) & (last < width)]
        seams = seams[~inside[seams]]
        ink[seams] *= _SEAM
    low, high = max(top, 0), min(bottom, pixels.shape[0])
    band = pixels[low:high]
    body = _packed(palette.ground + (palette.fills[code] - palette.ground) * ink[:, None])
    band[:, touched] = body[touched]
    if rim is not None:
        rim_colour = _packed(palette.ground + (palette.fills[rim] - palette.ground) * ink[:, None])
        for y in (top, bottom - 1):
            if low <= y < high:
                pixels[y, touched] = rim_colour[touched]
    waits = np.flatnonzero(touched & ((code == WAITING) | (code == UNFINISHED)))
    if waits.size:
        stripes = (waits[None, :] + np.arange(low, high)[:, None]) % 6 < 1
        part = band[:, waits]
        part[stripes] = palette.hatch
        band[:, waits] = part


def _covered(left: Int64, right: Int64, width: int) -> npt.NDArray[np.bool_]:
    """Which pixels lie in any of the ranges."""
    change = np.zeros(width + 1, np.int64)
    np.add.at(change, left, 1)
    np.add.at(change, right, -1)
    covered: npt.NDArray[np.bool_] = np.cumsum(change[:-1]) > 0
    return covered


def _draw_counter(
    pixels: Pixels, row: CounterRow, edges: npt.NDArray[np.float64], palette: Palette, scroll: int, ratio: float
) -> None:
    """Filled to the lowest value of each column, a line over all its values."""
    low, high, known = counter_columns(row.counter, edges)
    top, bottom = (row.top - scroll) * ratio, (row.top - scroll + COUNTER) * ratio
    span = max(row.counter.top - row.counter.bottom, 1e-300)
    y_high = np.rint(bottom - 1 - (high - row.counter.bottom) / span * (bottom - top - 2)).astype(np.int64)
    y_low = np.rint(bottom - 1 - (low - row.counter.bottom) / span * (bottom - top - 2)).astype(np.int64)
    before = np.concatenate((y_low[:1], y_low[:-1]))
    joined = known & np.concatenate((known[:1], known[:-1]))
    y_low = np.where(joined, np.maximum(y_low, np.minimum(before, y_high.max())), y_low)
    begin, end = max(round(top), 0), min(round(bottom), pixels.shape[0])
    if begin >= end:
        return
    y = np.arange(begin, end)[:, None]
    band = pixels[begin:end]
    band[known & (y > y_high)] = palette.counter
    band[known & (y >= y_high) & (y <= np.maximum(y_low, y_high))] = palette.counter_line
