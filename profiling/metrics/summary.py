"""One run in numbers: `RunAccumulator` takes records as they come, `summarise` a stored stream of them.

The window shows live numbers and reopened runs through this same code. A stream may end anywhere (cancelled, killed,
still running): what is there is reported, what is not is None with its reason in `unknown`.
"""

from collections.abc import Iterable, Sequence

from gptscope.profiling.metrics.latency import (
    NS_PER_MS,
    describe,
    inter_token_latencies_ms,
    step_times_ms,
    time_per_output_token_ms,
)
from gptscope.profiling.metrics.modelled import CostModel
from gptscope.profiling.metrics.run_summary import Outcome, RunSummary, SliceSummary
from gptscope.profiling.metrics.slices import Slice, SliceBook
from gptscope.profiling.metrics.speculation import guesses
from gptscope.profiling.metrics.statistics import median
from gptscope.profiling.metrics.throughput import tokens_per_second, work_done
from gptscope.profiling.metrics.utilisations import Rates, no_rates, rates
from gptscope.profiling.records import (
    Compiled,
    EvidenceReport,
    Failure,
    MemoryPeak,
    ModelLoaded,
    Notice,
    Peaks,
    Profile,
    Record,
    RunFinished,
    RunStarted,
    SliceDone,
    StepKind,
    StepSamples,
    Telemetry,
)

__all__ = ["Outcome", "RunAccumulator", "RunSummary", "SliceSummary", "summarise", "summarise_all"]

GAP_WARNING = 0.05
"""Share of the decode time between steps from which on it is worth a warning."""


def summarise(records: Iterable[Record], run_id: str | None = None) -> RunSummary:
    """Summarise one run of a finished or broken-off stream; without `run_id` the first run in it."""
    accumulator = RunAccumulator(run_id)
    for record in records:
        accumulator.add(record)
    return accumulator.summary(final=True)


def summarise_all(records: Iterable[Record]) -> dict[str, RunSummary]:
    """Summarise every run of a stream, in order of appearance; records without a run belong to all."""
    stream = list(records)
    run_ids = dict.fromkeys(r.run_id for r in stream if isinstance(r, RunStarted))
    return {run_id: summarise(stream, run_id) for run_id in run_ids}


class RunAccumulator:
    """Collects one run's records and summarises them at any time."""

    def __init__(self, run_id: str | None = None) -> None:
        self.run_id = run_id
        self.started: RunStarted | None = None
        self.loaded: ModelLoaded | None = None
        self.compiled: Compiled | None = None
        self.profile: Profile | None = None
        self.evidence: EvidenceReport | None = None
        self.peaks: Peaks | None = None
        self.memory: MemoryPeak | None = None
        self.finished: RunFinished | None = None
        self.failure: Failure | None = None
        self.book = SliceBook()
        self.notices: list[str] = []
        self.largest_rss_bytes: int | None = None
        self._cost: CostModel | None = None

    def add(self, record: Record) -> None:
        """Take one record; those of other runs and those without numbers change nothing."""
        owner = getattr(record, "run_id", None)
        if self.run_id is None and isinstance(record, RunStarted | ModelLoaded | StepSamples | SliceDone):
            self.run_id = owner
        if owner is not None and owner != self.run_id:
            return
        match record:
            case StepSamples():
                self.book.add_samples(record)
            case SliceDone():
                self.book.end_slice(record)
            case Telemetry():
                if owner is not None and record.worker_rss_bytes is not None:
                    self.largest_rss_bytes = max(record.worker_rss_bytes, self.largest_rss_bytes or 0)
            case MemoryPeak():
                if self.memory is None or record.process_bytes >= self.memory.process_bytes:
                    self.memory = record
            case Notice():
                if record.level == "warning":
                    self.notices.append(record.message)
            case _:
                self._keep(record)

    def _keep(self, record: Record) -> None:
        """Remember a record of which there is one per run (the newest counts; of failures the first)."""
        match record:
            case RunStarted():
                self.started = record
            case ModelLoaded():
                self.loaded, self._cost = record, None
            case Compiled():
                self.compiled = record
            case Profile():
                self.profile = record
            case EvidenceReport():
                self.evidence = record
            case Peaks():
                self.peaks = record
            case Failure():
                self.failure = self.failure or record
            case RunFinished():
                self.finished = record
            case _:
                pass

    @property
    def headline(self) -> StepKind:
        """The kind of step the workload is about."""
        kind = self.started.workload.kind if self.started is not None else "decode"
        return "decode" if kind == "generate" else kind

    def outcome(self, *, final: bool) -> Outcome:
        """How the run stands; a stream that ends without `RunFinished` was interrupted."""
        if self.finished is not None:
            return self.finished.outcome
        if self.failure is not None:
            return "failed"
        return "interrupted" if final else "running"

    def cost_model(self) -> CostModel | None:
        """The byte and FLOP model of this run, once its model is loaded.

        Raises:
            ValueError: The precision's sizes are not known.
        """
        if self.loaded is None or self.started is None:
            return None
        if self._cost is None:
            variant, batch = self.started.variant, self.started.workload.batch
            self._cost = CostModel(
                self.loaded.model, precision=variant.precision, kv_cache=variant.kv_cache, batch=batch
            )
        return self._cost

    def rates(self, slices: Sequence[Slice]) -> Rates:
        """Modelled rates of the given slices."""
        try:
            cost = self.cost_model()
        except ValueError as error:
            return no_rates(str(error))
        if cost is None or self.started is None:
            return no_rates("the model was not loaded")
        work = cost.work(slices, self.headline, self.started.workload)
        seconds = work_done(slices, self.headline).total_seconds
        if work is None or seconds <= 0:
            return no_rates("no step was measured")
        steps = sum(s.steps(self.headline).count for s in slices)
        return rates(work, seconds, steps, self.started.variant.precision, self.peaks)

    def summary(self, *, final: bool = False, with_intervals: bool = True) -> RunSummary:
        """The numbers so far.

        Args:
            final: The stream has ended, so what has not finished was interrupted.
            with_intervals: False leaves out the bootstrap, for a display that refreshes many times a second.
        """
        return _Summariser(self, final=final, with_intervals=with_intervals).build()


class _Summariser:
    """Puts one `RunSummary` together, noting a reason for everything that stays unknown."""

    def __init__(self, run: RunAccumulator, *, final: bool, with_intervals: bool) -> None:
        self.run, self.final, self.with_intervals = run, final, with_intervals
        self.slices = run.book.counted()
        self.unknown: dict[str, str] = {}

    def build(self) -> RunSummary:
        run, kind = self.run, self.run.headline
        started, loaded, profile = run.started, run.loaded, run.profile
        decoding = kind == "decode"
        work = work_done(self.slices, kind)
        modelled = run.rates(self.slices)
        self.unknown.update(modelled.unknown)
        latency = inter_token_latencies_ms(self.slices) if decoding else []
        guessing = guesses(self.slices)
        summary = RunSummary(
            run_id=run.run_id,
            name=started.name if started is not None else "",
            model=started.model if started is not None else "",
            outcome=run.outcome(final=self.final),
            workload=started.workload if started is not None else None,
            variant=started.variant if started is not None else None,
            headline=kind,
            tokens_per_s=tokens_per_second(work, with_interval=self.with_intervals),
            prompt_tokens_per_s=tokens_per_second(work_done(self.slices, "prefill"), with_interval=self.with_intervals),
            ttft=describe(step_times_ms(self.slices, "prefill"), with_interval=self.with_intervals),
            itl=describe(latency, with_interval=self.with_intervals),
            tpot_ms=time_per_output_token_ms(self.slices) if decoding else None,
            step_time=describe(step_times_ms(self.slices, kind), with_interval=self.with_intervals),
            flops_per_step=modelled.flops_per_step,
            step_bytes=modelled.step_bytes,
            achieved_gbps=modelled.achieved_gbps,
            achieved_tflops=modelled.achieved_tflops,
            measured_peak_gbps=modelled.mbu.peak if modelled.mbu is not None else None,
            measured_peak_tflops=modelled.mfu.peak if modelled.mfu is not None else None,
            mbu=modelled.mbu,
            mfu=modelled.mfu,
            published_mbu=modelled.published_mbu,
            published_mfu=modelled.published_mfu,
            peak_process_bytes=self._process_bytes(),
            peak_device_bytes=run.memory.device_bytes if run.memory is not None else None,
            kv_cache_bytes=run.memory.kv_cache_bytes if run.memory is not None else None,
            weight_bytes=loaded.model.weight_bytes if loaded is not None else None,
            load_s=loaded.load_s if loaded is not None else None,
            start_s=loaded.start_s if loaded is not None else None,
            compile_s=self._compile_s(),
            graph_breaks=run.compiled.graph_breaks if run.compiled is not None else None,
            compiled_regions=run.compiled.regions if run.compiled is not None else None,
            acceptance=guessing.acceptance if guessing is not None else None,
            tokens_per_step=guessing.tokens_per_step if guessing is not None else None,
            first_step_s=run.finished.first_step_s if run.finished is not None else None,
            profiler_overhead=profile.overhead if profile is not None else None,
            profile_busy_share=profile.busy_us / profile.wall_us if profile is not None and profile.wall_us else None,
            slices_counted=len(self.slices),
            slices_repeated=run.book.repeated(),
            slices_disturbed=sum(s.disturbed is not None for s in self.slices),
            disturbed_reasons=tuple(dict.fromkeys(s.disturbed for s in run.book.ended if s.disturbed is not None)),
            slices=self._slice_summaries(),
            warnings=self._warnings(work.between_steps),
            failure=run.failure.message if run.failure is not None else None,
            unknown=self.unknown,
        )
        self._explain_gaps(summary)
        return summary

    def _process_bytes(self) -> int | None:
        """The worker's own figure, or the largest of the samples taken from outside when it died before saying it."""
        return self.run.memory.process_bytes if self.run.memory is not None else self.run.largest_rss_bytes

    def _compile_s(self) -> float | None:
        """0 when the run never asked for compilation."""
        if self.run.compiled is not None:
            return self.run.compiled.compile_s
        return 0.0 if self.run.loaded is not None and "compile" not in self.run.loaded.fusions else None

    def _speculates(self) -> bool:
        started = self.run.started
        return started is not None and started.variant.speculation != "none"

    def _slice_summaries(self) -> tuple[SliceSummary, ...]:
        book, kind = self.run.book, self.run.headline
        counted = {id(one) for one in self.slices}
        summaries = []
        for one in [*book.ended, *book.running.values()]:
            steps = one.steps(kind)
            speed = tokens_per_second(work_done([one], kind), with_interval=False)
            summaries.append(
                SliceSummary(
                    number=one.number,
                    attempt=one.attempt,
                    pair=one.pair,
                    counted=id(one) in counted,
                    disturbed=one.disturbed,
                    steps=steps.count,
                    median_ms=median(steps.duration_ns / NS_PER_MS) if steps.count else None,
                    tokens_per_s=speed.value if speed is not None else None,
                )
            )
        return tuple(summaries)

    def _warnings(self, between_steps: float) -> tuple[str, ...]:
        warnings = list(dict.fromkeys(self.run.notices))
        disturbed = sum(s.disturbed is not None for s in self.slices)
        if disturbed:
            noun = "slice was" if disturbed == 1 else "slices were"
            warnings.append(f"{disturbed} of {len(self.slices)} counted {noun} disturbed in every attempt.")
        cut = [s for s in self.run.book.running.values() if s.samples]
        if cut and self.final:
            warnings.append("The last slice was cut off" + ("." if cut[0] in self.slices else " and is not counted."))
        if between_steps > GAP_WARNING:
            warnings.append(f"{between_steps:.0%} of the decode time lay between steps, outside the model.")
        if not self.run.book.ended and self.slices and self.final:
            warnings.append("No slice ended: the numbers come from an unfinished one.")
        return tuple(warnings)

    def _explain_gaps(self, summary: RunSummary) -> None:
        """Give every None of the summary a reason."""
        run = self.run
        unmeasured = "no step was measured"
        if run.failure is not None:
            unmeasured += f": {run.failure.message}"
        stopped = {"running": "not yet", "cancelled": "the run was cancelled before"}
        missing = stopped.get(summary.outcome, "the run ended before")
        decode_only = None if run.headline == "decode" else f"only decoding has it; this is a {run.headline} run"
        prefill_only = "a training run has no prefill" if run.headline == "train" else unmeasured
        reasons = {
            "tokens_per_s": unmeasured,
            "step_time": unmeasured,
            "itl": decode_only or unmeasured,
            "tpot_ms": decode_only or unmeasured,
            "ttft": prefill_only,
            "prompt_tokens_per_s": prefill_only,
            "peak_process_bytes": missing,
            "peak_device_bytes": "no GPU" if run.memory is not None else missing,
            "kv_cache_bytes": "this run keeps no KV cache" if run.memory is not None else missing,
            "weight_bytes": missing,
            "load_s": missing,
            "start_s": missing,
            "compile_s": missing,
            "graph_breaks": "nothing was compiled",
            "compiled_regions": "nothing was compiled",
            "acceptance": "no token was guessed" if self._speculates() else "no speculation",
            "tokens_per_step": unmeasured if self._speculates() else "no speculation: one token per step",
            "first_step_s": missing if summary.tokens_per_s is None else "the run did not end as planned",
            "profiler_overhead": "nothing was profiled",
            "profile_busy_share": "nothing was profiled",
            "measured_peak_gbps": self.unknown.get("mbu", unmeasured),
            "measured_peak_tflops": self.unknown.get("mfu", unmeasured),
            "workload": missing,
            "variant": missing,
        }
        for field, reason in reasons.items():
            if getattr(summary, field) is None:
                self.unknown.setdefault(field, reason)
