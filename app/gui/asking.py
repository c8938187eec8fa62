"""Questions to the engine: what machine and model are, downloads, ceilings; tuning, calibrating and saving models."""

from PySide6.QtCore import QObject, Signal

from gptscope.app.gui.session import Session
from gptscope.app.viewmodels.setup import SetupState
from gptscope.profiling.records import (
    AskCapabilities,
    Calibrate,
    Calibrated,
    Cancel,
    Capabilities,
    Failure,
    FetchModel,
    FineTune,
    FineTuned,
    InspectModel,
    MeasurePeaks,
    Message,
    ModelFetched,
    ModelInfo,
    ModelInspected,
    ModelSaved,
    Notice,
    Peaks,
    Progress,
    SaveModel,
)


class Asking(QObject):
    """Asks one question at a time, none while a run goes on, and keeps the answers."""

    capabilities_changed = Signal()
    model_changed = Signal()
    setup_changed = Signal()
    peaks_changed = Signal()
    told = Signal(str, str)  # sentence, level: for the status bar
    fetch_changed = Signal(object)  # Progress, or None when it ended
    work_changed = Signal(object)  # of work on a model: Progress, then the answer or a Failure

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.setup = SetupState()
        self.capabilities: Capabilities | None = None
        self.model: ModelInfo | None = None
        self.model_problem = ""
        self.fetch_problem = ""
        self.peaks: Peaks | None = None
        self.running = False
        self._waiting: dict[str, Message] = {}
        self._busy_with: str = ""

    def begin(self) -> None:
        """Start the engine and ask what this machine and the chosen model are."""
        self.session.start()
        self._ask("capabilities", AskCapabilities())
        self.inspect(self.setup.model)

    # ---------------------------------------------------------------------------------------------- questions

    def _ask(self, key: str, command: Message) -> None:
        """Send a question, or keep the newest of its kind until the engine is free."""
        if self.running or self._busy_with:
            self._waiting[key] = command
            return
        self._busy_with = key
        self.session.send(command)

    def _free(self) -> None:
        self._busy_with = ""
        if self._waiting and not self.running:
            key = next(iter(self._waiting))
            self._ask(key, self._waiting.pop(key))

    def inspect(self, source: str) -> None:
        """Choose a model; its facts arrive later."""
        self.setup.model = source
        self.model, self.model_problem, self.fetch_problem = None, "", ""
        self.model_changed.emit()
        self.setup_changed.emit()
        self._ask("inspect", InspectModel(model=source))

    def fetch(self, source: str) -> None:
        """Download a catalogue entry; progress is told by `fetch_changed`."""
        self.fetch_problem = ""
        self._ask("fetch", FetchModel(model=source))
        note = "waits for the end of the run" if self.running else "asking for the download"
        self.fetch_changed.emit(Progress(phase="fetch", done=0, total=0, note=note))

    @property
    def fetching(self) -> bool:
        """True while a model is being downloaded, or will be as soon as the engine is free."""
        return self._busy_with == "fetch" or "fetch" in self._waiting

    @property
    def working(self) -> bool:
        """True while the engine works on a model, or will as soon as it is free."""
        return self._busy_with == "work" or "work" in self._waiting

    def work(self, request: FineTune | Calibrate | SaveModel) -> str:
        """Have the engine work on a model; returns why not, or nothing. `work_changed` tells the rest."""
        if self.running:
            return "A run is going on; stop it first (Esc)."
        if self.working or self._busy_with == "fetch":
            return "The engine is busy with a download or another such job; wait for it, or stop it (Esc)."
        self._ask("work", request)
        self.work_changed.emit(Progress(phase="start", done=0, total=0, note="asking the engine"))
        return ""

    def stop_fetch(self) -> None:
        """Cancel the download; what has arrived is kept for the next attempt."""
        if self._waiting.pop("fetch", None) is not None:
            self.fetch_changed.emit(None)
        elif self._waiting.pop("work", None) is not None:
            self.work_changed.emit(Failure(kind="cancelled", message="Stopped before it began."))
        elif self._busy_with == "work":
            self.session.send(Cancel())
        elif self._busy_with == "fetch":
            self.session.send(Cancel())
            self.told.emit("Stopping the download; the next one goes on from what has arrived.", "info")

    def measure_peaks(self, *, fresh: bool = False) -> None:
        """Measure (or look up) this machine's memory and arithmetic ceilings."""
        self._ask("peaks", MeasurePeaks(fresh=fresh))
        self.told.emit("Measuring this machine's memory bandwidth and arithmetic; this takes some seconds.", "info")

    # ---------------------------------------------------------------------------------------------- answers

    def _on_answer(self, record: Message) -> None:
        match record:
            case Capabilities():
                self.capabilities = record
                self._answered("capabilities")
                self.capabilities_changed.emit()
            case ModelInspected():
                self.model = record.model
                self._answered("inspect")
                self.model_changed.emit()
            case ModelFetched():
                self._answered("fetch")
                self.fetch_changed.emit(None)
                self.told.emit(f"Fetched {record.model} to {record.path}.", "info")
                self.inspect(record.model)
            case Peaks():
                self.peaks = record
                self._answered("peaks")
                self.peaks_changed.emit()
            case FineTuned() | Calibrated() | ModelSaved():
                self._answered("work")
                self.work_changed.emit(record)
            case Progress() if not self.running and self._busy_with == "work":
                self.work_changed.emit(record)
            case Progress(phase="fetch") if not self.running:
                self.fetch_changed.emit(record)
            case Failure() if not self.running:
                self._question_failed(record)
            case Notice() if not self.running:
                self.told.emit(record.message, record.level)
            case _:
                pass

    def _answered(self, key: str) -> None:
        if self._busy_with == key:
            self._free()

    def _question_failed(self, failure: Failure) -> None:
        asked = self._busy_with
        self._free()
        if asked == "inspect":
            self.model_problem = failure.message
            self.model_changed.emit()
        elif asked == "work":
            self.work_changed.emit(failure)
        elif asked == "fetch":
            self.fetch_problem = "" if failure.kind == "cancelled" else failure.message
            self.fetch_changed.emit(None)
        self.told.emit(failure.message, "info" if failure.kind == "cancelled" else "error")
