"""Where the time between two runs went: one bar per group, from the baseline's step down to the candidate's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis
from gptscope.app.viewmodels.charts.kernel_times import category_title
from gptscope.app.viewmodels.scales import linear_axis
from gptscope.profiling.metrics.verdict import Verdict
from gptscope.profiling.metrics.waterfall import GAPS, UNATTRIBUTED, Waterfall, by_category, by_module
from gptscope.profiling.records import KernelRow, Profile

Tone = Literal["", "good", "bad"]
Grouping = Literal["module", "category"]
NOT_PROFILED = "Both runs need a kernel profile: this one, or its baseline, was not profiled."
_US_BELOW_NS = 1_000_000


@dataclass(frozen=True)
class WaterfallBar:
    """One row. `start` and `end` are on the axis; `category` names the colour: a kind of work, `gaps`, `rest`."""

    name: str
    was: str
    now: str
    change: str
    tone: Tone
    start: float
    end: float
    category: str
    change_ns: int


@dataclass(frozen=True)
class WaterfallChart:
    """The whole picture. The first and the last row are the measured steps; the overhead is not part of the sum."""

    baseline: WaterfallBar
    rows: tuple[WaterfallBar, ...]
    overhead: tuple[str, str]
    candidate: WaterfallBar
    axis: Axis
    unit: str
    totals: tuple[tuple[str, str, Tone, str], ...]
    """Per category: colour, change, tone, title."""
    note: str
    """Beside the last bar: `3.30x faster`."""


@dataclass(frozen=True)
class Scale:
    """One unit and one number of decimals for every figure of a waterfall, so that columns add up to the eye."""

    factor: float
    unit: str
    decimals: int

    def text(self, nanoseconds: int) -> str:
        """A time."""
        return fmt.fixed(nanoseconds * self.factor, self.decimals)

    def change(self, nanoseconds: int) -> str:
        """A change with its sign; what rounds to nothing is 0."""
        text = self.text(nanoseconds)
        if not any(digit in text for digit in "123456789"):
            return "0"
        return text if nanoseconds < 0 else f"+{text}"


def scale_for(longest_ns: int) -> Scale:
    """µs below a millisecond, else ms; as many decimals as give the longest step four digits, as a rule."""
    factor, unit = (1e-3, "µs") if longest_ns < _US_BELOW_NS else (1e-6, "ms")
    whole = len(str(int(longest_ns * factor)))
    return Scale(factor, unit, max(0, min(3, fmt.digits() + 1 - whole)))


def build(
    verdict: Verdict, grouping: Grouping, baseline: tuple[str, Profile | None], candidate: tuple[str, Profile | None]
) -> WaterfallChart | None:
    """None when one of the two was not profiled.

    Args:
        verdict: With its waterfalls.
        grouping: By part of the model or by kind of work.
        baseline: Name and profile, for the colours.
        candidate: Likewise.
    """
    found = verdict.by_module if grouping == "module" else verdict.by_category
    if found is None:
        return None
    scale = scale_for(max(found.baseline_ns, found.candidate_ns))
    colours = _colours(by_module if grouping == "module" else by_category, baseline[1], candidate[1])
    rows, at = [], found.baseline_ns
    highest = max(found.baseline_ns, found.candidate_ns)
    for row in found.rows:
        after = at + row.change_ns
        rows.append(
            WaterfallBar(
                name=category_title(row.name) if grouping == "category" else row.name,
                was=scale.text(row.baseline_ns),
                now=scale.text(row.candidate_ns),
                change=scale.change(row.change_ns),
                tone=_tone(row.change_ns, scale),
                start=at * scale.factor,
                end=after * scale.factor,
                category={GAPS: "gaps", UNATTRIBUTED: "rest"}.get(row.name, colours.get(row.name, "other")),
                change_ns=row.change_ns,
            )
        )
        at, highest = after, max(highest, after)
    whole = found.candidate_ns - found.baseline_ns
    return WaterfallChart(
        baseline=_step(baseline[0], found.baseline_ns, 0, scale),
        rows=tuple(rows),
        overhead=(scale.text(found.baseline_overhead_ns), scale.text(found.candidate_overhead_ns)),
        candidate=_step(candidate[0], found.candidate_ns, whole, scale),
        axis=linear_axis(0, highest * scale.factor, wanted=6, exact=True),
        unit=scale.unit,
        totals=_totals(verdict.by_category or found, scale),
        note=_note(found.baseline_ns, found.candidate_ns),
    )


def chart_rows(chart: WaterfallChart) -> list[tuple[str, str, str, str]]:
    """Name, was, now, change of every row, as exported."""
    middle = [(row.name, row.was, row.now, row.change) for row in chart.rows]
    first = (chart.baseline.name, chart.baseline.was, "", "")
    return [first, *middle, (chart.candidate.name, "", chart.candidate.now, chart.candidate.change)]


def _step(name: str, step_ns: int, change_ns: int, scale: Scale) -> WaterfallBar:
    text = scale.text(step_ns)
    return WaterfallBar(
        name=name,
        was=text,
        now=text,
        change=scale.change(change_ns) if change_ns else "",
        tone=_tone(change_ns, scale),
        start=0.0,
        end=step_ns * scale.factor,
        category="",
        change_ns=change_ns,
    )


def _tone(change_ns: int, scale: Scale) -> Tone:
    if scale.change(change_ns) == "0":
        return ""
    return "good" if change_ns < 0 else "bad"


def _note(baseline_ns: int, candidate_ns: int) -> str:
    if candidate_ns <= 0 or baseline_ns <= 0:
        return ""
    ratio = baseline_ns / candidate_ns
    word = "" if abs(ratio - 1) < 0.005 else " faster" if ratio > 1 else " the speed"
    return f"{fmt.ratio(ratio)}{word}"


def _colours(group: Callable[[KernelRow], str], *profiles: Profile | None) -> dict[str, str]:
    """Group -> the kind of work that most of its time is."""
    times: dict[str, dict[str, float]] = {}
    for profile in profiles:
        for row in profile.kernels if profile is not None else ():
            of_group = times.setdefault(group(row), {})
            share = row.self_time_us / max(profile.steps, 1) if profile is not None else 0.0
            of_group[row.category] = of_group.get(row.category, 0.0) + share
    return {name: max(of_group, key=lambda kind: of_group[kind]) for name, of_group in times.items()}


def _totals(found: Waterfall, scale: Scale) -> tuple[tuple[str, str, Tone, str], ...]:
    made: list[tuple[str, str, Tone, str]] = []
    for row in found.rows:
        kind = {GAPS: "gaps", UNATTRIBUTED: "rest"}.get(row.name, row.name)
        title = {"gaps": "gaps", "rest": "unattributed"}.get(kind, category_title(kind))
        text = scale.change(row.change_ns)
        if text != "0":
            made.append((kind, text, _tone(row.change_ns, scale), title))
    return tuple(made)
