"""How sure the baseline was at each token of one prompt, and where the candidate left its text."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Axis, Bars, ChartData, Level, Role, floats
from gptscope.app.viewmodels.scales import linear_axis
from gptscope.profiling.records import PromptComparison, Quality

EMPTY = "The baseline's margins were not recorded for this prompt."


def build(quality: Quality | None, index: int) -> ChartData:
    """Margins token by token: what both say, the first difference, what came after."""
    prompts = quality.prompts if quality is not None else ()
    if quality is None or not 0 <= index < len(prompts) or not prompts[index].margins:
        return ChartData(x_axis=Axis(low=0, high=1), y_axis=Axis(low=0, high=1), empty=EMPTY)
    prompt = prompts[index]
    margins = [max(margin, 0.0) for margin in prompt.margins]
    count, equal = len(margins), min(prompt.equal, len(margins))
    parts = [_bars("same text", margins, 0, equal, "other")]
    if prompt.outcome != "equal" and equal < count:
        role: Role = "bad" if prompt.outcome == "changed" else "warn"
        parts += [_bars("first difference", margins, equal, equal + 1, role)]
        parts += [_bars("after it", margins, equal + 1, count, "faint")]
    tie = quality.near_tie_margin
    step = max(1, round(count / 4))
    ticks = [1, *range(step, count + 1, step)] if count > 1 else [1]
    return ChartData(
        x_axis=Axis(
            low=0, high=count, ticks=tuple((tick - 0.5, str(tick)) for tick in ticks), title="token", named=True
        ),
        y_axis=linear_axis(0, max(*margins, tie or 0.0, 1e-6), wanted=2, title="margin, logits"),
        bars=tuple(bars for bars in parts if bars.heights.size),
        levels=(Level(y=tie, label="near-tie", role="warn"),) if tie else (),
        summary=_summary(prompt),
    )


def _bars(name: str, margins: list[float], first: int, after: int, role: Role) -> Bars:
    edges = floats(range(first, after + 1)) if after > first else floats([first])
    return Bars(name=name, edges=edges, heights=floats(margins[first:after]), role=role)


def _summary(prompt: PromptComparison) -> str:
    if prompt.outcome == "equal":
        return f"Margins of {len(prompt.margins)} tokens; the texts are the same."
    return f"Margins of {len(prompt.margins)} tokens; the texts part at token {prompt.equal + 1}."


def read_out(chart: ChartData, x: float) -> str:
    """`token 7: margin 4.10`."""
    index = int(x)
    for bars in chart.bars:
        first = int(bars.edges[0])
        if first <= index < first + bars.heights.size:
            return f"token {index + 1}: margin {fmt.number(float(bars.heights[index - first]))}"
    return ""
