"""Questions that a worker of their own answers: capabilities, peaks, inspections, downloads, saving, fine-tuning."""

from dataclasses import dataclass

from gptscope.profiling.engine.limits import Limits
from gptscope.profiling.engine.outbox import Outbox
from gptscope.profiling.engine.worker_handle import WorkerError, WorkerHandle, WorkerOptions, worker_environment
from gptscope.profiling.records import (
    AskCapabilities,
    Calibrate,
    Calibrated,
    Capabilities,
    Command,
    Failure,
    FetchModel,
    FineTune,
    FineTuned,
    InspectModel,
    MeasurePeaks,
    ModelFetched,
    ModelInspected,
    ModelSaved,
    Peaks,
    Progress,
    SaveModel,
    WorkerRecord,
)

Question = AskCapabilities | MeasurePeaks | InspectModel | FetchModel | SaveModel | FineTune | Calibrate
_ANSWERS: dict[type[Command], type[WorkerRecord]] = {
    AskCapabilities: Capabilities,
    MeasurePeaks: Peaks,
    InspectModel: ModelInspected,
    FetchModel: ModelFetched,
    SaveModel: ModelSaved,
    FineTune: FineTuned,
    Calibrate: Calibrated,
}


@dataclass(frozen=True, slots=True)
class _Kind:
    doing: str
    silence_s: float


def _kind(question: Question, limits: Limits) -> _Kind:
    match question:
        case AskCapabilities():
            return _Kind("finding out what this machine offers", limits.ask_s)
        case MeasurePeaks():
            return _Kind("measuring this machine's peaks", limits.peaks_s)
        case InspectModel():
            return _Kind(f"inspecting {question.model}", limits.ask_s)
        case FetchModel():
            return _Kind(f"fetching {question.model}", limits.fetch_s)
        case SaveModel():
            return _Kind(f"saving {question.model}", limits.load_s)
        case Calibrate():
            return _Kind(f"calibrating {question.model}", limits.load_s)
        case FineTune():
            return _Kind(f"fine-tuning {question.model}", limits.load_s)


def doing(question: Question) -> str:
    """What is being done, for sentences."""
    return _kind(question, Limits()).doing


async def answer(question: Question, outbox: Outbox, options: WorkerOptions, limits: Limits) -> None:
    """Let a new worker answer; exactly one answer or failure is sent, progress before it.

    When the task is cancelled the worker is killed and nothing more is sent.
    """
    kind = _kind(question, limits)
    answered = False

    async def take(record: WorkerRecord, header: bytes, payload: bytes) -> None:
        nonlocal answered
        answered = answered or isinstance(record, (_ANSWERS[type(question)], Failure))
        await outbox.send_frame(header, payload)

    threads = question.threads if isinstance(question, MeasurePeaks | FineTune | Calibrate) else None
    worker = WorkerHandle("The worker", take)
    outbox.put(Progress(phase="start", done=0, total=0, note="importing libraries"))
    try:
        await worker.start(
            WorkerOptions(options.command, worker_environment(options.environment, threads), options.children)
        )
        await worker.ask(question, silence_s=kind.silence_s, doing=kind.doing)
        await worker.leave(limits.leave_s)
    except WorkerError as error:
        if not error.told:
            outbox.put(error.failure)
            answered = True
    finally:
        await worker.kill()
    if not answered:
        outbox.put(Failure(kind="internal", message=f"The worker gave no answer when it was {kind.doing}."))
