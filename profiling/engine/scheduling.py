"""What is measured in which order, as plain values: slices, alternation, repeats, and what fits into memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gptscope.profiling.experiment import Variant, Workload

MAX_SLICES = 12
"""Train and prefill steps are cut into at most this many slices; a pair of medians needs several, not hundreds."""
EXTRA_ATTEMPTS_PER_SLICE = 2
DEFAULT_PROFILE_STEPS = {"train": 3, "prefill": 3, "decode": 16, "generate": 16}
MEMORY_RESERVE_BYTES = 512 << 20
"""Left free for the system and for buffers that grow while measuring."""
BYTES_PER_WEIGHT = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0}


def slice_steps(workload: Workload) -> tuple[int, ...]:
    """Steps of each slice.

    Decode and generate: one whole sequence per slice, which is the natural unit (prefill, then every token). Train and
    prefill: nearly equal slices, at most `MAX_SLICES`.
    """
    if workload.kind in ("decode", "generate"):
        return (1,) * workload.steps
    slices = min(workload.steps, MAX_SLICES)
    whole, rest = divmod(workload.steps, slices)
    return tuple(whole + (1 if index < rest else 0) for index in range(slices))


def alternation(variants: int, slices: int) -> tuple[tuple[int, ...], ...]:
    """Variants to measure for each pair number: A B, B A, A B, … so that a drifting machine favours none of them."""
    forward = tuple(range(variants))
    return tuple(forward if pair % 2 == 0 else forward[::-1] for pair in range(slices))


@dataclass(frozen=True, slots=True)
class Visit:
    """One loading of one variant when memory cannot hold all: its slices are measured, then it leaves."""

    variant: int
    slices: tuple[int, ...]
    last: bool
    """The variant is not loaded again: profile and evaluate it now."""


def rounds(variants: int, slices: int) -> tuple[Visit, ...]:
    """Visits in alternating rounds: first half of the slices A B C, second half C B A.

    The last variant of the first round is the first one of the second, so it stays loaded: 2 n - 1 loadings.
    """
    half = (slices + 1) // 2
    first, second = tuple(range(half)), tuple(range(half, slices))
    visits = [Visit(index, first, last=not second) for index in range(variants)]
    if second:
        visits[-1] = Visit(variants - 1, first + second, last=True)
        visits += [Visit(index, second, last=True) for index in reversed(range(variants - 1))]
    return tuple(visits)


@dataclass(slots=True)
class RepeatBudget:
    """Allows repeats of disturbed slices: `EXTRA_ATTEMPTS_PER_SLICE` for each, `total` for the whole experiment."""

    total: int
    _used: dict[tuple[int, int], int] = field(default_factory=dict)

    def take(self, variant: int, pair: int) -> int | None:
        """The number of the next attempt (1, 2, …) at this slice, or None when it is not repeated again."""
        used = self._used.get((variant, pair), 0)
        if used >= EXTRA_ATTEMPTS_PER_SLICE or self.total <= 0:
            return None
        self.total -= 1
        self._used[variant, pair] = used + 1
        return used + 1


def repeat_budget(variants: int, slices: int) -> RepeatBudget:
    """A busy machine may lengthen an experiment by half, and a short one by at least four slices."""
    return RepeatBudget(max(4, variants * slices // 2))


def profile_steps(wanted: int | None, workload: Workload) -> int:
    """Steps (train, prefill) or tokens (decode, generate) to record; 0: none."""
    if wanted is not None:
        return wanted
    steps = DEFAULT_PROFILE_STEPS[workload.kind]
    return min(steps, workload.new_tokens) if workload.kind in ("decode", "generate") else steps


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What one loaded and warmed-up worker holds, in bytes."""

    resident: int
    peak: int
    """The largest it ever was, e.g. while it converted its weights."""


def estimated_use(measured: MemoryUse, measured_variant: Variant, other: Variant, parameters: int) -> MemoryUse:
    """What `other` will hold, judged by a variant that is already loaded: the weights change with the precision.

    An unknown precision counts as FP32: too much is the safe side.
    """
    widths = [BYTES_PER_WEIGHT.get(variant.precision, 4.0) for variant in (measured_variant, other)]
    change = int(parameters * (widths[1] - widths[0]))
    resident = max(0, measured.resident + change)
    return MemoryUse(resident=resident, peak=max(resident, measured.peak + max(0, change)))


def fits_together(available_bytes: int, others: Sequence[MemoryUse]) -> bool:
    """Whether workers that are yet to be loaded fit into what is free now.

    They are loaded one after another, so only the largest surplus of a peak over the resident size counts on top.
    """
    if not others:
        return True
    needed = sum(use.resident for use in others) + max(use.peak - use.resident for use in others)
    return needed + MEMORY_RESERVE_BYTES <= available_bytes
