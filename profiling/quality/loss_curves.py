"""Training losses of two variants side by side: step k sees the same tokens in both, so what differs is the levers'.

What is compared is the end of the curves: the mean difference over the last quarter of the steps that both did. Losses
of neighbouring steps hang together, so whole stretches of steps are resampled for the interval, not single ones.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from gptscope.profiling.metrics.statistics import clustered_interval
from gptscope.profiling.quality.loss_seeds import SeedComparison, over_seeds
from gptscope.profiling.records import Record, RunStarted, SeedLosses, StepSamples

LAST_SHARE = 4
"""The last 1 / LAST_SHARE of the steps is compared."""
LEAST_STEPS = 4
STRETCHES = 8
"""Into so many stretches the compared steps are cut, when there are enough of them."""


class LossComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The ends of two loss curves, in nats per token."""

    run_id: str
    baseline_run_id: str
    steps: int
    """That both did, in the same order on the same tokens."""
    compared: int
    """The last ones, over which the means below are taken."""
    baseline: float
    candidate: float
    difference: float
    """Candidate minus baseline."""
    low: float | None
    high: float | None
    """95 % interval of the difference; None with too few steps."""
    broken: int = 0
    """Steps of the candidate whose loss was NaN or infinite; they are left out."""
    over_seeds: SeedComparison | None = None
    """The same difference over several seeds, the measured one among them; None: only one was asked for."""

    @property
    def differs(self) -> bool | None:
        """Whether the interval leaves zero out; None without one."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 0.0 <= self.high


def losses_of(records: Iterable[Record], run_id: str) -> list[float]:
    """The loss of every training step of a run in its order, warm-up and profiled steps among them."""
    losses: list[float] = []
    for record in records:
        if isinstance(record, StepSamples) and record.run_id == run_id and record.kind == "train":
            losses += record.loss
    return losses


def compare_losses(
    candidate: Sequence[float], baseline: Sequence[float], *, run_id: str, baseline_run_id: str
) -> LossComparison | None:
    """Compare the ends of two curves.

    Args:
        candidate: Loss of each step.
        baseline: The same of the baseline.
        run_id: The candidate's.
        baseline_run_id: The baseline's.

    Returns:
        None when they have no step with two finite losses in common.
    """
    steps = min(len(candidate), len(baseline))
    broken = sum(not math.isfinite(loss) for loss in candidate[:steps])
    pairs = [
        (ours, theirs)
        for ours, theirs in zip(candidate, baseline, strict=False)
        if math.isfinite(ours) and math.isfinite(theirs)
    ]
    if not pairs:
        return None
    last = pairs[-min(len(pairs), max(LEAST_STEPS, len(pairs) // LAST_SHARE)) :]
    ours_N, theirs_N = np.array(last, dtype=np.float64).T
    stretches = np.array_split(ours_N - theirs_N, min(STRETCHES, max(1, len(last) // 2)))
    interval = clustered_interval(stretches, lambda values: float(values.mean()))
    low, high = interval if interval is not None else (None, None)
    return LossComparison(
        run_id=run_id,
        baseline_run_id=baseline_run_id,
        steps=steps,
        compared=len(last),
        baseline=float(theirs_N.mean()),
        candidate=float(ours_N.mean()),
        difference=float((ours_N - theirs_N).mean()),
        low=low,
        high=high,
        broken=broken,
    )


def compare_all(records: Sequence[Record], run_ids: Sequence[str]) -> list[LossComparison]:
    """Every candidate that trained beside the baseline, the first of `run_ids`."""
    if len(run_ids) < 2:
        return []
    baseline, of_seeds = losses_of(records, run_ids[0]), losses_by_seed(records, run_ids[0])
    found = []
    for run_id in run_ids[1:]:
        one = compare_losses(losses_of(records, run_id), baseline, run_id=run_id, baseline_run_id=run_ids[0])
        if one is not None:
            seeds = compare_seeds(losses_by_seed(records, run_id), of_seeds)
            found.append(msgspec.structs.replace(one, over_seeds=seeds))
    return found


def losses_by_seed(records: Sequence[Record], run_id: str) -> dict[int, Sequence[float]]:
    """The losses of each seed of a run, that of the measurement first."""
    seed: int | None = None
    further: dict[int, Sequence[float]] = {}
    for record in records:
        if isinstance(record, RunStarted) and record.run_id == run_id:
            seed = record.seed
        elif isinstance(record, SeedLosses) and record.run_id == run_id:
            further[record.seed] = record.loss
    return with_measured(seed, losses_of(records, run_id), further)


def with_measured(
    seed: int | None, measured: Sequence[float], further: Mapping[int, Sequence[float]]
) -> dict[int, Sequence[float]]:
    """The measured seed's losses before those of the further seeds; all cut to the same number of steps."""
    found = {**({seed: measured} if seed is not None else {}), **further}
    steps = min(map(len, found.values()), default=0)
    return {seed: loss[:steps] for seed, loss in found.items()}


def compare_seeds(
    candidate: Mapping[int, Sequence[float]], baseline: Mapping[int, Sequence[float]]
) -> SeedComparison | None:
    """The ends of the curves, seed by seed; None with fewer than two seeds that both trained to finite losses."""
    pairs = {
        seed: compare_losses(loss, baseline[seed], run_id="", baseline_run_id="")
        for seed, loss in candidate.items()
        if seed in baseline
    }
    ends = {seed: one.difference for seed, one in pairs.items() if one is not None}
    return over_seeds(ends) if len(ends) > 1 else None
