"""Columns beside the tables of a trace: steps by what their time went to, launches by how long the device waited."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis
from gptscope.app.viewmodels.charts.bars import ColumnChart, ColumnLayer, Look, no_columns
from gptscope.app.viewmodels.scales import linear_axis
from gptscope.profiling.trace.analysis import PARTS, Linked, StepTimes, launch_delays

_NS_PER_MS, _NS_PER_US = 1e6, 1e3
_LOOKS: dict[str, Look] = {
    "compute": "accent",
    "communication": "communication",
    "copy": "copy",
    "runtime": "t3",
    "data loading": "t1",
    "operators": "ctl",
    "other": "hatch",
}
PART_TITLES = {"runtime": "launch calls", "operators": "operators on the host", "other": "nothing recorded"}
DELAY = "delay"
"""A key that begins so means launches with a delay from .. to .. nanoseconds."""


def step_columns(steps: Sequence[StepTimes]) -> ColumnChart:
    """Each step's wall time in parts that add up to it."""
    if not steps:
        return no_columns("n/a: this trace has no work that could fill a step.")
    whole = sum(step.wall_ns for step in steps)
    layers, legend = [], []
    for part in PARTS:
        total = sum(step.parts_ns[part] for step in steps)
        if total > 0:
            heights = [step.parts_ns[part] / _NS_PER_MS for step in steps]
            layers.append(ColumnLayer(name=PART_TITLES.get(part, part), look=_LOOKS[part], heights=heights))
            legend.append((_LOOKS[part], f"{PART_TITLES.get(part, part)} {fmt.share(total / whole)}"))
    return ColumnChart(
        x_axis=_numbered([step.name.rpartition("#")[2] for step in steps]),
        y_axis=linear_axis(0, max(step.wall_ns for step in steps) / _NS_PER_MS, unit="ms", title="milliseconds"),
        keys=tuple(f"{step.start_ns}\n{step.start_ns + step.wall_ns}" for step in steps),
        labels=tuple(_about(step) for step in steps),
        layers=tuple(layers),
        legend=tuple(legend),
        summary=f"{fmt.count(len(steps))} step{'s' if len(steps) != 1 else ''}; "
        + ", ".join(text for _, text in legend),
    )


def _about(step: StepTimes) -> str:
    parts = sorted(((ns, part) for part, ns in step.parts_ns.items() if ns), reverse=True)[:3]
    texts = [f"{PART_TITLES.get(part, part)} {fmt.share(ns / step.wall_ns)}" for ns, part in parts]
    return f"{step.name}: {fmt.number(step.wall_ns / _NS_PER_MS)} ms, {', '.join(texts)}"


def _numbered(names: Sequence[str]) -> Axis:
    every = max(1, -(-len(names) // 8))
    ticks = tuple((float(place), names[place]) for place in range(0, len(names), every))
    return Axis(low=-0.5, high=len(names) - 0.5, ticks=ticks, title="step", named=True)


def delay_columns(linked: Linked) -> ColumnChart:
    """How many launches had to wait how long for their work to begin; columns of 1, 2 and 5 µs and their tens."""
    if not linked.has_device:
        return no_columns("n/a: no device work was recorded (profiler activity CUDA), so nothing was launched.")
    _, delay = launch_delays(linked)
    known = delay[delay > 0]
    if not known.size:
        return no_columns("n/a: the launches of this device work were not recorded (profiler activity CPU).")
    edges = _edges(float(known.min()), float(known.max()))
    counts = np.histogram(known, edges)[0]
    texts = [_round_time(edge) for edge in edges.tolist()]
    labels = [f"{texts[i]} to {texts[i + 1]}: {_launches(int(count))}" for i, count in enumerate(counts.tolist())]
    every = max(1, -(-len(texts) // 7))
    ticks = tuple((place - 0.5, texts[place]) for place in range(0, len(texts), every))
    return ColumnChart(
        x_axis=Axis(low=-0.5, high=len(counts) - 0.5, ticks=ticks, title="time until work began", named=True),
        y_axis=_whole(linear_axis(0, float(counts.max()), title="launches")),
        keys=tuple(
            f"{DELAY}\n{low}\n{high}" for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ),
        labels=tuple(labels),
        layers=(ColumnLayer(name="launches", look="accent", heights=counts.tolist()),),
        summary=f"{_launches(int(known.size))}, median delay {fmt.duration(float(np.median(known)) / 1e9)}.",
    )


def _edges(low: float, high: float) -> np.ndarray:
    """Round limits around all delays, in nanoseconds."""
    first, last = int(np.floor(np.log10(low))), int(np.floor(np.log10(high)))
    steps = np.array([step * 10.0**power for power in range(first, last + 2) for step in (1, 2, 5)])
    begin = max(int(np.searchsorted(steps, low, side="right")) - 1, 0)
    end = int(np.searchsorted(steps, high, side="right"))
    return steps[begin : end + 1]


def _whole(axis: Axis) -> Axis:
    """There are no half launches."""
    ticks = tuple((value, fmt.count(round(value))) for value, _ in axis.ticks if value == round(value))
    return dataclasses.replace(axis, ticks=ticks)


def _round_time(ns: float) -> str:
    """1, 2 or 5 and their tens without the zeros that a measured time has: `20 µs`."""
    number, unit = fmt.duration(ns / 1e9).split(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def _launches(count: int) -> str:
    return f"{fmt.count(count)} launch{'es' if count != 1 else ''}"
