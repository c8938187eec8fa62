"""How a process, an experiment and its runs begin, get on, fail and end."""

from typing import Literal

from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records.machine import MachineInfo
from gptscope.profiling.records.message import SCHEMA_VERSION, Message

Phase = Literal["start", "fetch", "load", "compile", "warmup", "measure", "profile", "evaluate", "peaks", "train"]


FailureKind = Literal[
    "usage",  # the request cannot be run as asked
    "model",  # missing, damaged, foreign or unsupported weights
    "memory",  # does or did not fit
    "worker_died",
    "timeout",
    "offline",
    "disk",
    "internal",
    "cancelled",  # a question (capabilities, peaks, inspection, download); experiments say it by their outcome
]


class Hello(Message, frozen=True):
    """First record of every process."""

    role: Literal["engine", "worker"]
    pid: int
    gptscope_version: str
    schema_version: int = SCHEMA_VERSION


class ExperimentStarted(Message, frozen=True):
    """The engine accepted an experiment; `run_ids` are in the order of its variants."""

    experiment_id: str
    experiment: Experiment
    run_ids: tuple[str, ...]
    started_unix_ns: int


class RunStarted(Message, frozen=True):
    """One variant's worker is up. Holds everything that repeats the run."""

    run_id: str
    experiment_id: str
    variant: Variant
    name: str
    workload: Workload
    model: str
    command: str
    """The exact command line that repeats this run."""
    started_unix_ns: int
    machine: MachineInfo
    versions: dict[str, str]
    environment: dict[str, str]
    """Environment variables that matter to speed, only those that are set."""
    threads: int
    seed: int


class Progress(Message, frozen=True):
    """How far a phase is. `total` 0 = unknown."""

    phase: Phase
    done: float
    total: float
    unit: str = ""
    """`bytes`, `steps`, `tokens`, `slices`, ...; bytes are shown as MB."""
    note: str = ""
    run_id: str | None = None


class Notice(Message, frozen=True):
    """Something a person should know that is not a failure, in one sentence."""

    message: str
    level: Literal["info", "warning"] = "info"
    run_id: str | None = None


class Failure(Message, frozen=True):
    """Something asked for did not happen: what, why, what to do, in `message`; nothing measured is lost."""

    kind: FailureKind
    message: str
    detail: str = ""
    """Last lines of stderr, or a traceback, for the details view."""
    run_id: str | None = None


class RunFinished(Message, frozen=True):
    """Last record of a run."""

    run_id: str
    outcome: Literal["done", "cancelled", "failed"]
    finished_unix_ns: int
    first_step_s: float | None = None
    """Seconds from the experiment's start until the first measured step."""


class ExperimentFinished(Message, frozen=True):
    """Last record of an experiment."""

    experiment_id: str
    outcome: Literal["done", "cancelled", "failed"]


class Bye(Message, frozen=True):
    """Last record of every process that ends as planned; an end without it is a crash."""

    reason: str = ""
