"""Is the candidate faster than the baseline, and does it still say the same?

Speed: for every pair of slices measured next to each other, the ratio of their median step times (mean times of a token
where guesses are checked, several tokens per step); the speedup is the median of these ratios with a bootstrap 95 %
interval over pairs. An interval that holds 1 means no real difference.
Output: greedy continuations and the distributions over the evaluation text, from the `Quality` record.
"""

from collections.abc import Iterable

from gptscope.profiling.metrics.slices import Slice, joined
from gptscope.profiling.metrics.statistics import Estimate, bootstrap_interval, median
from gptscope.profiling.metrics.summary import RunAccumulator
from gptscope.profiling.metrics.verdict import TITLES, PairRatio, Verdict, VerdictKind
from gptscope.profiling.metrics.waterfall import Waterfall, by_category, by_module, waterfall
from gptscope.profiling.records import Quality, Record

MIN_PAIRS = 5
"""The range of fewer pairs does not cover the true median in 95 of 100 cases (4 pairs: 1 - 2 / 2^4 = 87.5 %)."""
SAME_OUTPUT_KL = 0.01
"""Nats per token, mean. Above it the output counts as changed even if no greedy token did."""


def compare_runs(
    baseline_records: Iterable[Record],
    candidate_records: Iterable[Record],
    quality: Quality | None = None,
    *,
    baseline_id: str | None = None,
    candidate_id: str | None = None,
) -> Verdict:
    """Judge a candidate.

    Args:
        baseline_records: Stream that holds the baseline's run.
        candidate_records: Stream that holds the candidate's run; may be the same stream.
        quality: How the candidate's output compares, if it was evaluated.
        baseline_id: Which run of the first stream; None: the first.
        candidate_id: Which run of the second stream; None: the first.
    """
    baseline, candidate = RunAccumulator(baseline_id), RunAccumulator(candidate_id)
    for record in baseline_records:
        baseline.add(record)
    for record in candidate_records:
        candidate.add(record)
    return judge(baseline, candidate, quality)


def judge(baseline: RunAccumulator, candidate: RunAccumulator, quality: Quality | None = None) -> Verdict:
    """`compare_runs` for two runs whose records were collected already."""
    pairs, warnings = _usable(paired_ratios(baseline, candidate))
    changed, output_sentence = _output(candidate, quality)
    reason = _not_comparable(baseline, candidate, pairs)
    speedup = None if reason is not None else _speedup(pairs)
    kind = _kind(speedup, changed=changed)
    return Verdict(
        baseline_run_id=baseline.run_id,
        candidate_run_id=candidate.run_id,
        kind=kind,
        title=TITLES[kind],
        sentence=_sentence(kind, speedup, reason, output_sentence, len(pairs)),
        speedup=speedup,
        plain_ratio=_plain_ratio(baseline, candidate),
        pairs=tuple(pairs),
        output_changed=changed,
        output_sentence=output_sentence,
        by_category=_waterfall(baseline, candidate, modules=False),
        by_module=_waterfall(baseline, candidate, modules=True),
        warnings=tuple(warnings),
    )


def paired_ratios(baseline: RunAccumulator, candidate: RunAccumulator) -> list[PairRatio]:
    """One ratio for every pair number that both runs have a counted slice of, in order."""
    ours = {s.pair: s for s in baseline.book.counted() if s.pair is not None}
    theirs = {s.pair: s for s in candidate.book.counted() if s.pair is not None}
    ratios = []
    for pair in sorted(ours.keys() & theirs.keys()):
        baseline_ms, candidate_ms = _median_ms(ours[pair], baseline), _median_ms(theirs[pair], candidate)
        if baseline_ms and candidate_ms:
            disturbed = ours[pair].disturbed is not None or theirs[pair].disturbed is not None
            ratios.append(PairRatio(pair=pair, baseline_ms=baseline_ms, candidate_ms=candidate_ms, disturbed=disturbed))
    return ratios


def _median_ms(one: Slice, run: RunAccumulator) -> float | None:
    steps = one.steps(run.headline)
    return steps.typical_ns / 1e6 if steps.count else None


def _usable(pairs: list[PairRatio]) -> tuple[list[PairRatio], list[str]]:
    """Undisturbed pairs when there are enough of them, all otherwise; with what a person should know."""
    quiet = [p for p in pairs if not p.disturbed]
    left_out = len(pairs) - len(quiet)
    if not left_out:
        return pairs, []
    if len(quiet) >= MIN_PAIRS:
        return quiet, [f"{left_out} of {len(pairs)} pairs were disturbed and are left out."]
    return pairs, [f"{left_out} of {len(pairs)} pairs were disturbed; too few are left without them, so all count."]


def _speedup(pairs: list[PairRatio]) -> Estimate:
    ratios = [p.speedup for p in pairs]
    low, high = bootstrap_interval(ratios)
    return Estimate(value=median(ratios), low=low, high=high)


def _not_comparable(baseline: RunAccumulator, candidate: RunAccumulator, pairs: list[PairRatio]) -> str | None:
    """Why the two cannot be compared, or None."""
    for run, who in ((baseline, "baseline"), (candidate, "candidate")):
        if run.started is None:
            return f"the {who} did not start"
        if not run.book.counted():
            failure = f": {run.failure.message}" if run.failure is not None else ""
            return f"the {who} was not measured{failure}".rstrip(".")
    ours, theirs = baseline.started, candidate.started
    assert ours is not None
    assert theirs is not None
    if ours.model != theirs.model:
        return f"the models differ ({ours.model} and {theirs.model})"
    if ours.workload != theirs.workload:
        return "the workloads differ"
    if (ours.machine.device, ours.machine.device_name) != (theirs.machine.device, theirs.machine.device_name):
        return f"they ran on different devices ({ours.machine.device_name} and {theirs.machine.device_name})"
    if ours.experiment_id != theirs.experiment_id:
        return "they were measured at different times; run both in one comparison for an interval"
    if len(pairs) < MIN_PAIRS:
        return f"only {len(pairs)} pairs of slices were measured, and an interval needs {MIN_PAIRS}; use more steps"
    return None


def _output(candidate: RunAccumulator, quality: Quality | None) -> tuple[bool | None, str]:
    """Whether the output changed, and the sentence about it."""
    if quality is None or (quality.kl_mean is None and not quality.greedy_tokens):
        if candidate.loaded is not None and candidate.loaded.model.random_weights:
            return None, "output not compared: random weights say nothing"
        return None, "output not compared"
    if quality.broken_positions:
        return True, f"{quality.broken_positions} positions came out as NaN or infinity"
    if quality.real_changes:
        noun = "prompt" if quality.real_changes == 1 else "prompts"
        verb = "continues" if quality.real_changes == 1 else "continue"
        return True, f"{quality.real_changes} {noun} {verb} differently"
    if quality.kl_mean is not None and quality.kl_mean > SAME_OUTPUT_KL:
        return True, f"the distribution moved by {quality.kl_mean:.2g} nats per token"
    ties = quality.near_ties
    apart = "" if not ties else f" (apart from {ties} near-tie{'s' if ties > 1 else ''})"
    return False, f"the output is the same{apart}"


def _kind(speedup: Estimate | None, *, changed: bool | None) -> VerdictKind:
    if speedup is None or speedup.low is None or speedup.high is None:
        return "not_comparable"
    if speedup.low <= 1.0 <= speedup.high:
        return "no_real_difference"
    if speedup.high < 1.0:
        return "slower"
    if changed is None:
        return "faster_output_unknown"
    return "faster_output_changed" if changed else "faster_same_output"


def _sentence(kind: VerdictKind, speedup: Estimate | None, reason: str | None, output: str, pairs: int) -> str:
    if speedup is None or speedup.low is None or speedup.high is None:
        return f"Not comparable: {reason}."
    interval = f"[{speedup.low:.2f}, {speedup.high:.2f}]"
    if kind == "no_real_difference":
        return (
            f"No real difference: {speedup.value:.2f}x, and the 95 % interval {interval} of {pairs} pairs holds 1; "
            f"{output}."
        )
    if kind == "slower":
        return (
            f"Slower: {speedup.value:.2f}x the baseline's speed, 95 % interval {interval} of {pairs} pairs; {output}."
        )
    return f"{speedup.value:.2f}x faster, 95 % interval {interval} of {pairs} pairs; {output}."


def _plain_ratio(baseline: RunAccumulator, candidate: RunAccumulator) -> float | None:
    ours, theirs = _step_ns(baseline), _step_ns(candidate)
    return ours / theirs if ours and theirs else None


def _step_ns(run: RunAccumulator) -> int | None:
    """Median step (with speculation: mean time of a token) of all counted slices, in whole nanoseconds."""
    steps = joined(run.book.counted(), run.headline)
    return round(steps.typical_ns) if steps.count else None


def _waterfall(baseline: RunAccumulator, candidate: RunAccumulator, *, modules: bool) -> Waterfall | None:
    """None when one of them was not profiled or not measured."""
    ours, theirs = _step_ns(baseline), _step_ns(candidate)
    if baseline.profile is None or candidate.profile is None or ours is None or theirs is None:
        return None
    return waterfall(
        baseline.profile,
        candidate.profile,
        baseline_step_ns=ours,
        candidate_step_ns=theirs,
        group=by_module if modules else by_category,
    )
