"""One run as the window shows it: fed record by record, live or from the library, through the same code."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gptscope.app.viewmodels.chart_data import Region
from gptscope.app.viewmodels.estimate import STEP_KIND
from gptscope.app.viewmodels.series import NS_PER_S, LogHistogram, RateSeries
from gptscope.app.viewmodels.setup import title_of
from gptscope.profiling.metrics.summary import RunAccumulator, RunSummary
from gptscope.profiling.records import (
    Compiled,
    Failure,
    GeneratedText,
    ModelLoaded,
    Profile,
    Record,
    RunFinished,
    RunStarted,
    SliceDone,
    StepKind,
    StepSamples,
    Telemetry,
)

MAX_TEXT = 20_000
"""Generated characters kept for the text pane; older ones leave at the front, and the pane says so."""
_JOINED_NS = 500_000_000
"""Disturbed stretches closer to each other than this are drawn as one."""


@dataclass
class Stretch:
    """A stretch of time on the worker's clock."""

    start_ns: int
    end_ns: int
    kind: Literal["warmup", "profile", "disturbed"]
    reason: str = ""


@dataclass
class SliceWork:
    """The main steps of one attempt at one slice."""

    latencies: list[int] = field(default_factory=list)
    """Nanoseconds of each main step; when decoding, from the end of one token to the end of the next."""
    tokens: float = 0.0
    bytes: float = 0.0
    disturbed: bool = False


@dataclass
class RunView:
    """Everything the charts need of one run. `revision` grows with every record that changes something."""

    run_id: str
    accumulator: RunAccumulator = field(init=False)
    rate: RateSeries = field(default_factory=RateSeries)
    latency: LogHistogram = field(default_factory=LogHistogram)
    stretches: list[Stretch] = field(default_factory=list)
    text: str = ""
    text_cut: bool = False
    revision: int = 0
    slices_done: int = 0
    measured_steps: int = 0
    measured_tokens: float = 0.0
    measured_bytes: float = 0.0
    """Modelled; NaN when the byte model does not know the precision."""
    last_step_ns: int | None = None
    first_step_ns: int | None = None
    _slice_start: dict[int, int] = field(default_factory=dict)
    _token_end_ns: dict[int, int] = field(default_factory=dict)
    _open_slices: dict[int, SliceWork] = field(default_factory=dict)
    _counted: dict[int, SliceWork] = field(default_factory=dict)
    _summary: tuple[int, bool, RunSummary] | None = None

    def __post_init__(self) -> None:
        self.accumulator = RunAccumulator(self.run_id)

    # ------------------------------------------------------------------------------------------------- feeding

    def apply(self, record: Record) -> None:
        """Take one record of this run (or of none)."""
        self.accumulator.add(record)
        match record:
            case StepSamples():
                self._add_steps(record)
            case SliceDone():
                self._end_slice(record)
            case GeneratedText():
                self._add_text(record.text)
            case RunFinished() if self._counted:
                for work in self._open_slices.values():  # cut off: does not count beside whole slices
                    self._count(work, sign=-1)
                self._open_slices.clear()
            case Telemetry():
                return
            case _:
                pass
        self.revision += 1

    def _add_steps(self, samples: StepSamples) -> None:
        if not samples.start_ns:
            return
        start, end = samples.start_ns[0], samples.start_ns[-1] + samples.duration_ns[-1]
        self.first_step_ns = start if self.first_step_ns is None else self.first_step_ns
        self.last_step_ns = end
        if samples.phase in ("warmup", "profile"):
            self._extend(samples.phase, start, end)
        else:
            self._slice_start.setdefault(samples.slice, start)
        previous_end = self._token_end_ns.get(samples.slice) if samples.phase == "measure" else None
        if samples.phase == "measure":
            self._token_end_ns[samples.slice] = end
        if samples.kind != self.main_kind:
            return
        moved = self._moved(samples)
        if samples.phase != "profile":  # profiled steps are slower and have their own chart
            self.rate.add(samples.start_ns, samples.duration_ns, samples.tokens, moved)
        if samples.phase == "measure":
            latencies = _latencies_ns(samples, previous_end)
            work = self._open_slices.setdefault(samples.slice, SliceWork())
            work.latencies.extend(latencies)
            work.tokens += sum(samples.tokens)
            work.bytes += float(moved.sum())
            self._count(SliceWork(latencies, sum(samples.tokens), float(moved.sum())), sign=1)

    def _count(self, work: SliceWork, *, sign: int) -> None:
        """Add a slice's steps to the histogram and the sums, or take them back."""
        (self.latency.add if sign > 0 else self.latency.remove)(work.latencies)
        self.measured_steps += sign * len(work.latencies)
        self.measured_tokens += sign * work.tokens
        self.measured_bytes += sign * work.bytes

    def _moved(self, samples: StepSamples) -> np.ndarray:
        """Modelled bytes of each step; NaN where the model of this run is unknown."""
        try:
            cost = self.accumulator.cost_model()
        except ValueError:
            cost = None
        count = len(samples.start_ns)
        if cost is None or self.started is None:
            return np.full(count, np.nan)
        work = self.started.workload
        contexts = samples.context if len(samples.context) == count else (work.context,) * count
        return np.asarray([cost.step(self.main_kind, context)[1].total for context in contexts], np.float64)

    def _extend(self, kind: Literal["warmup", "profile"], start: int, end: int) -> None:
        last = self.stretches[-1] if self.stretches else None
        if last is not None and last.kind == kind and start - last.end_ns < 2 * NS_PER_S:
            last.end_ns = end
        else:
            self.stretches.append(Stretch(start, end, kind))

    def _end_slice(self, done: SliceDone) -> None:
        self.slices_done += 1 if done.disturbed is None else 0
        self._choose_attempt(done)
        self._token_end_ns.pop(done.slice, None)
        start = self._slice_start.pop(done.slice, None)
        if done.disturbed is not None and start is not None and self.last_step_ns is not None:
            self._add_disturbed(Stretch(start, self.last_step_ns, "disturbed", done.disturbed))

    def _add_disturbed(self, stretch: Stretch) -> None:
        """Slices that follow each other are one stretch: an hour on a busy machine is not a thousand of them."""
        last = self.stretches[-1] if self.stretches else None
        if last is not None and last.kind == "disturbed" and stretch.start_ns - last.end_ns < _JOINED_NS:
            last.end_ns, last.reason = stretch.end_ns, stretch.reason
        else:
            self.stretches.append(stretch)

    def _choose_attempt(self, done: SliceDone) -> None:
        """One attempt of each slice counts: the last undisturbed one, else the last (as in `SliceBook.counted`)."""
        work = self._open_slices.pop(done.slice, None)
        if work is None:
            return
        earlier = self._counted.get(done.slice)
        if earlier is None or done.disturbed is None or earlier.disturbed:
            if earlier is not None:
                self._count(earlier, sign=-1)
            work.disturbed = done.disturbed is not None
            self._counted[done.slice] = work
        else:
            self._count(work, sign=-1)

    def _add_text(self, text: str) -> None:
        self.text += text
        if len(self.text) > MAX_TEXT:
            self.text, self.text_cut = self.text[-MAX_TEXT:], True

    # ------------------------------------------------------------------------------------------------- reading

    @property
    def started(self) -> RunStarted | None:
        """How the run was started."""
        return self.accumulator.started

    @property
    def loaded(self) -> ModelLoaded | None:
        """The model with its levers applied."""
        return self.accumulator.loaded

    @property
    def compiled(self) -> Compiled | None:
        """What torch.compile did."""
        return self.accumulator.compiled

    @property
    def profile(self) -> Profile | None:
        """The kernel table."""
        return self.accumulator.profile

    @property
    def finished(self) -> RunFinished | None:
        """How it ended."""
        return self.accumulator.finished

    @property
    def failure(self) -> Failure | None:
        """What went wrong first."""
        return self.accumulator.failure

    @property
    def main_kind(self) -> StepKind:
        """The kind of step the workload is about."""
        return STEP_KIND[self.started.workload.kind] if self.started is not None else "decode"

    @property
    def name(self) -> str:
        """The variant in words."""
        return title_of(self.started.variant) if self.started is not None else self.run_id

    def summary(self, *, intervals: bool = False) -> RunSummary:
        """The numbers so far, computed once per change."""
        if self._summary is None or self._summary[:2] != (self.revision, intervals):
            made = self.accumulator.summary(final=self.finished is not None, with_intervals=intervals)
            self._summary = (self.revision, intervals, made)
        return self._summary[2]

    def last_summary(self) -> RunSummary:
        """The numbers as `summary` gave them last, for what is drawn more often than numbers are read anew."""
        return self.summary() if self._summary is None or self.finished is not None else self._summary[2]

    def regions(self, zero_ns: int) -> tuple[Region, ...]:
        """Hatched (not counted) and disturbed stretches in seconds since `zero_ns`; each kind is labelled once."""
        named: set[str] = set()
        made = []
        for stretch in self.stretches:
            label = ""
            if stretch.kind not in named:
                label = _LABELS[stretch.kind]
                named.add(stretch.kind)
            made.append(
                Region(
                    start=(stretch.start_ns - zero_ns) / NS_PER_S,
                    end=(stretch.end_ns - zero_ns) / NS_PER_S,
                    kind="warn" if stretch.kind == "disturbed" else "hatched",
                    label=label,
                )
            )
        return tuple(made)


def _latencies_ns(samples: StepSamples, previous_end_ns: int | None) -> list[int]:
    """What the latency card counts: inter-token latency when decoding (see `metrics.latency`), else step times."""
    if samples.kind != "decode":
        return list(samples.duration_ns)
    ends = [start + duration for start, duration in zip(samples.start_ns, samples.duration_ns, strict=True)]
    first = samples.start_ns[0] if previous_end_ns is None else previous_end_ns
    return [end - before for before, end in zip([first, *ends[:-1]], ends, strict=True)]


_LABELS = {
    "warmup": "warm-up,\nnot counted",
    "profile": "profiled,\nnot counted",
    "disturbed": "machine busy:\nslice repeated",
}
