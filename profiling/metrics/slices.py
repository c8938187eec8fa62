"""Step samples sorted into slices: which ones count, and why the others do not.

`StepSamples` carry no attempt number, but a slice's samples come before its `SliceDone`, so order tells attempts apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gptscope.profiling.records import SliceDone, StepKind, StepSamples

Ints = npt.NDArray[np.int64]
_NOTHING: Ints = np.empty(0, dtype=np.int64)
_COLUMNS = ("start_ns", "duration_ns", "tokens", "context", "drafted")


@dataclass(frozen=True, slots=True)
class Steps:
    """Consecutive steps of one kind in one slice; arrays of equal length."""

    start_ns: Ints
    duration_ns: Ints
    tokens: Ints
    context: Ints
    """Tokens per sequence attended to; empty when the worker did not say."""
    drafted: Ints
    """Tokens guessed; empty without speculation."""

    @property
    def end_ns(self) -> Ints:
        """When each step ended."""
        return self.start_ns + self.duration_ns

    @property
    def count(self) -> int:
        """Number of steps."""
        return int(self.duration_ns.size)

    @property
    def typical_ns(self) -> float:
        """Median step; with speculation the mean time of one token, for steps give one token or several."""
        if self.drafted.size:
            return float(self.duration_ns.sum() / self.tokens.sum())
        return float(np.median(self.duration_ns))


@dataclass(slots=True)
class Slice:
    """One attempt at one slice."""

    number: int
    attempt: int = 0
    pair: int | None = None
    seconds: float | None = None
    """Wall time of the whole slice; None: it did not end."""
    disturbed: str | None = None
    samples: list[StepSamples] = field(default_factory=list)
    _known: dict[StepKind, tuple[int, Steps]] = field(default_factory=dict, repr=False, compare=False)
    """Joined steps by kind, with how many samples they are made of: a live display asks many times a second."""

    @property
    def finished(self) -> bool:
        """False when the run was stopped, or is still, inside this slice."""
        return self.seconds is not None

    def steps(self, kind: StepKind) -> Steps:
        """All samples of one kind, joined."""
        count, steps = self._known.get(kind, (-1, None))
        if steps is None or count != len(self.samples):
            steps = _joined([s for s in self.samples if s.kind == kind])
            self._known[kind] = (len(self.samples), steps)
        return steps


def joined(slices: Iterable["Slice"], kind: StepKind) -> Steps:
    """All steps of one kind in several slices."""
    parts = [one.steps(kind) for one in slices]
    return _steps({name: np.concatenate([_NOTHING, *(getattr(part, name) for part in parts)]) for name in _COLUMNS})


def _joined(parts: Sequence[StepSamples]) -> Steps:
    return _steps({name: _column(getattr(part, name) for part in parts) for name in _COLUMNS})


def _steps(columns: dict[str, Ints]) -> Steps:
    """Context and guesses count only where every step has them."""
    count = columns["duration_ns"].size
    for name in ("context", "drafted"):
        columns[name] = columns[name] if columns[name].size == count else _NOTHING
    return Steps(**columns)


def _column(tuples: Iterable[tuple[int, ...]]) -> Ints:
    return np.asarray([value for t in tuples for value in t], dtype=np.int64)


@dataclass(slots=True)
class SliceBook:
    """All slices of one run, fed record by record."""

    ended: list[Slice] = field(default_factory=list)
    """Every finished attempt, in order."""
    running: dict[int, Slice] = field(default_factory=dict)
    """Attempts that have samples but no `SliceDone` yet, by slice number."""

    def add_samples(self, samples: StepSamples) -> None:
        """Take the samples of a measured step; others (warm-up, profiled) are not measurements and are left out."""
        if samples.phase == "measure":
            self.running.setdefault(samples.slice, Slice(samples.slice)).samples.append(samples)

    def end_slice(self, done: SliceDone) -> None:
        """Close an attempt; its samples came before."""
        ended = self.running.pop(done.slice, Slice(done.slice))
        ended.attempt, ended.pair = done.attempt, done.pair
        ended.seconds, ended.disturbed = done.seconds, done.disturbed
        self.ended.append(ended)

    def counted(self) -> list[Slice]:
        """The attempts whose samples make the numbers, one per slice number, in order.

        The last undisturbed attempt counts; a slice that was disturbed every time counts by its last attempt (and is
        reported as disturbed). A slice that was cut off counts only while no slice has ended, so that a live run has
        numbers from its first step.
        """
        by_number: dict[int, Slice] = {}
        for attempt in self.ended:
            earlier = by_number.get(attempt.number)
            if attempt.samples and (earlier is None or attempt.disturbed is None or earlier.disturbed is not None):
                by_number[attempt.number] = attempt
        chosen = by_number or {number: s for number, s in self.running.items() if s.samples}
        return [chosen[number] for number in sorted(chosen)]

    def repeated(self) -> int:
        """How many attempts were measured again because something disturbed them."""
        return len(self.ended) - len({s.number for s in self.ended})
