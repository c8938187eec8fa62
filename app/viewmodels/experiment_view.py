"""A whole experiment as the window shows it: its runs, the machine's sensors, the list of events."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.output_records import OutputRecords
from gptscope.app.viewmodels.run_view import RunView
from gptscope.app.viewmodels.series import NS_PER_S, TimeSeries
from gptscope.profiling.experiment import Experiment
from gptscope.profiling.records import (
    Compiled,
    EvidenceReport,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    MachineInfo,
    ModelLoaded,
    Notice,
    Peaks,
    Profile,
    Progress,
    Quality,
    Record,
    RunFinished,
    RunStarted,
    SliceDone,
    StepSamples,
    Telemetry,
)
from gptscope.profiling.store.refused import Refusal

MAX_EVENTS = 500


@dataclass(frozen=True)
class Event:
    """One line of the events list. `at_s` None: before the first sample of the clock."""

    at_s: float | None
    text: str
    level: Literal["info", "warning", "error"] = "info"


@dataclass
class Sensors:
    """The machine while the experiment ran."""

    worker_percent: TimeSeries = field(default_factory=TimeSeries)
    other_percent: TimeSeries = field(default_factory=TimeSeries)
    own_percent: TimeSeries = field(default_factory=TimeSeries)
    frequency_mhz: TimeSeries = field(default_factory=TimeSeries)
    rss_bytes: TimeSeries = field(default_factory=TimeSeries)
    gpu_percent: TimeSeries = field(default_factory=TimeSeries)
    gpu_power_w: TimeSeries = field(default_factory=TimeSeries)
    gpu_temperature_c: TimeSeries = field(default_factory=TimeSeries)
    gpu_memory_bytes: TimeSeries = field(default_factory=TimeSeries)
    max_frequency_mhz: float | None = None
    gpu_reason: str = ""
    revision: int = 0

    def apply(self, sample: Telemetry) -> None:
        """Take one sample."""
        at, cpu = sample.time_ns, sample.cpu
        self.worker_percent.add(at, cpu.worker_percent)
        self.other_percent.add(at, cpu.other_percent)
        self.own_percent.add(at, cpu.own_percent)
        self.frequency_mhz.add(at, cpu.frequency_mhz)
        self.max_frequency_mhz = cpu.max_frequency_mhz or self.max_frequency_mhz
        self.rss_bytes.add(at, sample.worker_rss_bytes)
        if sample.gpu is not None:
            self.gpu_percent.add(at, sample.gpu.utilisation_percent)
            self.gpu_power_w.add(at, sample.gpu.power_w)
            self.gpu_temperature_c.add(at, sample.gpu.temperature_c)
            self.gpu_memory_bytes.add(at, sample.gpu.memory_used_bytes)
        self.gpu_reason = sample.gpu_reason or ""
        self.revision += 1


class ExperimentView:
    """Fed with every record of one experiment, in order."""

    def __init__(self, experiment_id: str = "") -> None:
        self.experiment_id = experiment_id
        self.experiment: Experiment | None = None
        self.run_ids: tuple[str, ...] = ()
        self.chosen_run = ""
        """The run a person picked; empty: the last variant."""
        self.runs: dict[str, RunView] = {}
        self.sensors = Sensors()
        self.events: list[Event] = []
        self.events_dropped = 0
        self.progress: dict[str, Progress] = {}
        """Newest progress of each phase."""
        self.phase: str = ""
        self.active_run: str = ""
        self.peaks: Peaks | None = None
        self.machine: MachineInfo | None = None
        self.finished: ExperimentFinished | None = None
        self.qualities: dict[str, Quality] = {}
        """How each candidate's output compares with its baseline's, by run."""
        self.output = OutputRecords()
        self._refusal = Refusal()
        self.zero_ns: int | None = None
        self.now_ns: int | None = None
        self.revision = 0

    @classmethod
    def replay(cls, experiment_id: str, records: Iterable[Record]) -> "ExperimentView":
        """The view of a stored experiment."""
        view = cls(experiment_id)
        for record in records:
            view.apply(record)
        return view

    # ------------------------------------------------------------------------------------------------- feeding

    def apply(self, record: Record) -> None:
        """Take one record."""
        self._clock(record)
        run_id = getattr(record, "run_id", None)
        if isinstance(run_id, str) and run_id:
            self._run(run_id).apply(record)
        elif isinstance(record, Peaks | Failure):
            for run in self.runs.values():
                run.apply(record)
        self.output.apply(record)
        self._refusal.take(record)
        match record:
            case ExperimentStarted():
                self.experiment_id, self.experiment = record.experiment_id, record.experiment
                self.run_ids = record.run_ids
            case RunStarted():
                self.machine, self.active_run = record.machine, record.run_id
            case Telemetry():
                self.sensors.apply(record)
            case Progress():
                self._progressed(record)
            case Peaks():
                self.peaks = record
            case Quality():
                self.qualities[record.run_id] = record
            case ExperimentFinished():
                self.finished = record
            case _:
                pass
        self._note(record)
        self.revision += 1

    def _run(self, run_id: str) -> RunView:
        if run_id not in self.runs:
            self.runs[run_id] = RunView(run_id)
            if self.peaks is not None:
                self.runs[run_id].apply(self.peaks)
        return self.runs[run_id]

    def _clock(self, record: Record) -> None:
        moment: int | None = None
        if isinstance(record, Telemetry):
            moment = record.time_ns
        elif isinstance(record, StepSamples) and record.start_ns:
            moment = record.start_ns[-1] + record.duration_ns[-1]
            self.active_run = record.run_id
        if moment is not None:
            first = record.start_ns[0] if isinstance(record, StepSamples) else moment
            self.zero_ns = first if self.zero_ns is None else min(self.zero_ns, first)
            self.now_ns = moment if self.now_ns is None else max(self.now_ns, moment)

    def _progressed(self, record: Progress) -> None:
        self.progress[record.phase] = record
        self.phase = record.phase
        if record.run_id:
            self.active_run = record.run_id

    def _note(self, record: Record) -> None:
        several = len(self.run_ids) > 1
        owner = getattr(record, "run_id", None)
        run = self.runs.get(owner) if isinstance(owner, str) else None
        prefix = f"{run.name}: " if several and run is not None else ""
        for text, level in sentences(record):
            self.add_event(prefix + text, level)

    def add_event(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Add a line; beyond `MAX_EVENTS` the oldest leave and are counted."""
        self.events.append(Event(self.now_s, text, level))
        if len(self.events) > MAX_EVENTS:
            del self.events[0]
            self.events_dropped += 1
        self.revision += 1

    def choose(self, run_id: str) -> None:
        """Put one run in the foreground."""
        self.chosen_run = run_id
        self.revision += 1

    # ------------------------------------------------------------------------------------------------- reading

    @property
    def now_s(self) -> float | None:
        """Seconds from the first to the newest sample of the clock."""
        if self.zero_ns is None or self.now_ns is None:
            return None
        return (self.now_ns - self.zero_ns) / NS_PER_S

    @property
    def current(self) -> RunView | None:
        """The run in the foreground: the last variant (the candidate) once it has begun, else the newest."""
        if self.chosen_run in self.runs:
            return self.runs[self.chosen_run]
        known = [self.runs[run_id] for run_id in self.run_ids if run_id in self.runs]
        started = [run for run in known if run.started is not None] or list(self.runs.values())
        return started[-1] if started else None

    @property
    def own_baseline(self) -> RunView | None:
        """The experiment's own baseline when it has more than one variant."""
        if len(self.run_ids) < 2:
            return None
        return self.runs.get(self.run_ids[0])

    @property
    def refused(self) -> bool:
        """True when it ended before anything ran, because it cannot be run as asked; it is not kept."""
        return self._refusal.refused

    @property
    def running(self) -> bool:
        """True until the experiment's last record."""
        return self.finished is None


def sentences(record: Record) -> list[tuple[str, Literal["info", "warning", "error"]]]:
    """What the events list says about a record."""
    match record:
        case ModelLoaded():
            skipped = [f"{name} left out: {reason}" for name, reason in record.skipped.items()]
            first = f"Loaded {record.model.name} in {fmt.duration(record.load_s)}"
            return [(first, "info"), *((text, "info") for text in skipped)]
        case Compiled():
            return [(f"Compiled in {fmt.duration(record.compile_s)}, {record.graph_breaks} graph breaks", "info")]
        case SliceDone(disturbed=str(reason)):
            return [(f"Slice {record.slice + 1} not counted: {reason}", "warning")]
        case SliceDone():
            return [(f"Slice {record.slice + 1} measured in {fmt.duration(record.seconds)}", "info")]
        case Profile():
            return [(f"Profiled {record.steps} steps, {fmt.ratio(record.overhead)} of the unprofiled time", "info")]
        case EvidenceReport():
            return [
                (f"{i.lever} is not in effect: {i.sentence}", "error") for i in record.items if i.in_effect is False
            ]
        case Peaks():
            said = "reused" if record.reused else "measured"
            return [(f"Peak of memory {said}: read {fmt.number(record.read_gbps)} GB/s", "info")]
        case Notice():
            return [(record.message, "warning" if record.level == "warning" else "info")]
        case Failure():
            return [(record.message, "error")]
        case RunFinished(outcome="cancelled"):
            return [("Stopped; what was measured is kept", "info")]
        case RunFinished(outcome="done"):
            return [("Finished", "info")]
        case _:
            return []
