"""How a candidate's training ended beside the baseline's, in words: one measured seed, or several."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.profiling.quality.loss_curves import LossComparison
from gptscope.profiling.quality.loss_seeds import SeedComparison


def loss_text(one: LossComparison) -> str:
    """`3.412, +0.003 (95 % interval −0.001 to +0.007): no real difference`."""
    text = f"{fmt.number(one.candidate)}, {fmt.signed(one.difference)}"
    if one.low is None or one.high is None:
        text += " (too few steps for an interval)"
    else:
        text += f" (95 % interval {fmt.signed(one.low)} to {fmt.signed(one.high)}): {_verdict_of(one, one.baseline)}"
    return text + (f"; {one.broken} steps had no finite loss" if one.broken else "")


def _verdict_of(one: LossComparison | SeedComparison, baseline: float) -> str:
    """A difference can be certain and still too small to matter, so its size stands beside it."""
    if not one.differs:
        return "no real difference"
    size = fmt.percent(abs(one.difference) / baseline) if baseline > 0 else "n/a"
    return f"a real difference, {size} of the loss"


def seeds_text(one: SeedComparison, baseline: float) -> str:
    """`over 5 seeds: +0.003 (95 % interval −0.001 to +0.007): no real difference`; `baseline` is its loss."""
    text = f"over {len(one.seeds)} seeds: {fmt.signed(one.difference)}"
    if one.low is None or one.high is None:
        return text
    return f"{text} (95 % interval {fmt.signed(one.low)} to {fmt.signed(one.high)}): {_verdict_of(one, baseline)}"
