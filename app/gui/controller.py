"""What the window does with runs: starts them, feeds their records to view-models and library, pins baselines."""

import logging
import time
import uuid
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal

from gptscope.app.gui.asking import Asking
from gptscope.app.gui.session import Session
from gptscope.app.gui.settings import Settings
from gptscope.app.viewmodels.progress_text import PHASE_SENTENCES, starting_sentence
from gptscope.app.viewmodels.setup import title_of
from gptscope.app.viewmodels.setup_problems import problems
from gptscope.app.viewmodels.variant_names import run_title
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import (
    Cancel,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    InspectModel,
    Message,
    Notice,
    RunFinished,
    TraceChunk,
)

if TYPE_CHECKING:
    from gptscope.app.gui.library_access import LibraryAccess
    from gptscope.app.viewmodels.experiment_view import ExperimentView
    from gptscope.app.viewmodels.phases import PhaseClock
    from gptscope.app.viewmodels.run_view import RunView

logger = logging.getLogger(__name__)
_WRITTEN_MS, _WRITTEN_TRIES = 250, 20
"""How often and how many times to look whether the recorder, a thread of its own, has written a run's end."""
DEMO_WORKLOAD = Workload(kind="decode", context=128, new_tokens=96, steps=6)
DEMO_VARIANTS = (Variant(name="FP32 plain"), Variant(precision="bf16", fusions=("all",), kv_cache="static"))


class Controller(Asking):
    """State of the window that outlives its views. Views read it and listen to its signals."""

    experiment_opened = Signal()  # another experiment is shown
    running_changed = Signal()
    baseline_changed = Signal()
    failed = Signal(object)  # Failure

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session)
        self.settings = settings
        self.experiment: ExperimentView | None = None
        self.baseline: RunView | None = None
        self.clock: PhaseClock | None = None
        self.stopping = False
        self.library: LibraryAccess | None = None
        self._open_runs: set[str] = set()
        session.record.connect(self._on_record)
        session.ended.connect(self._on_ended)

    # ---------------------------------------------------------------------------------------------- life

    def use_library(self, library: "LibraryAccess") -> None:
        """Take a library and bring the pinned baseline back from it."""
        self.library = library
        library.problem.connect(lambda sentence: self.told.emit(sentence, "warning"))
        for sentence in library.notices:
            self.told.emit(sentence, "warning")
        if self.settings.baseline_run:
            entry = library.find(self.settings.baseline_run)
            if entry is not None and entry.deleted_unix_ns is None:
                self._take_baseline(self.replayed(entry.experiment_id), entry.run_id)

    def close(self) -> None:
        """End engine and library."""
        self.session.close()
        if self.library is not None:
            self.library.close()

    # ---------------------------------------------------------------------------------------------- running

    def problems(self) -> dict[str, str]:
        """What in Setup cannot be run as it stands, by field."""
        return problems(self.setup, self.model, self.capabilities)

    def run(self) -> None:
        """Run the setting of the Setup dock, or say what is wrong with it."""
        wrong = self.problems()
        if wrong:
            self.told.emit(next(iter(wrong.values())), "warning")
            return
        self.start(self.setup.experiment(self.capabilities))

    def run_demo(self) -> None:
        """FP32 plain against BF16, fused, cached, on the bundled model, measured alternately."""
        self.start(Experiment(model="bundled", workload=DEMO_WORKLOAD, variants=DEMO_VARIANTS))

    def start(self, experiment: Experiment) -> None:
        """Start an experiment unless one is running."""
        reason = self._why_not_now()
        if reason:
            self.told.emit(reason, "warning")
            return
        from gptscope.app.viewmodels.experiment_view import ExperimentView
        from gptscope.app.viewmodels.phases import PhaseClock

        if not self.settings.profile_after_run and experiment.profile_steps is None:
            import msgspec

            experiment = msgspec.structs.replace(experiment, profile_steps=0)
        from gptscope.profiling.channel import ChannelError, encode
        from gptscope.profiling.records import StartExperiment

        experiment_id = uuid.uuid4().hex
        command = StartExperiment(experiment=experiment, experiment_id=experiment_id)
        try:
            encode(command)
        except ChannelError:
            self.told.emit("The prompt is too long for the engine; shorten it to a few million letters.", "error")
            return
        if self.library is not None and self.library.is_removed:
            self.library.reopen()
        self.experiment, self.clock = ExperimentView(experiment_id), PhaseClock()
        self.experiment.experiment = experiment
        self.clock.tick("start", time.monotonic())
        self._open_runs.clear()
        self.running, self.stopping = True, False
        self.session.send(command)
        self.settings.add_recent_model(experiment.model)
        self.experiment_opened.emit()
        self.running_changed.emit()
        known = self.model if experiment.model == self.setup.model else None
        self.told.emit(starting_sentence(experiment.model, known), "info")

    def _why_not_now(self) -> str:
        if self.running:
            return "A run is going on; stop it first (Esc)."
        if self._busy_with == "work":
            return "A model is being fine-tuned, calibrated or saved; wait for it, or stop it (Esc)."
        if self._busy_with == "fetch":
            return "A model is being fetched; wait for it, or stop the download first (Esc)."
        return ""

    def stop(self) -> None:
        """Cancel the running experiment, or else the download; what was measured is kept."""
        if not self.running:
            self.stop_fetch()
        if self.running and not self.stopping:
            self.stopping = True
            self.session.send(Cancel())
            self.running_changed.emit()
            self.told.emit("Stopping; what was measured is kept.", "info")

    def pin_current(self) -> None:
        """Make the shown run the baseline."""
        run = self.experiment.current if self.experiment is not None else None
        if run is None or run.summary().tokens_per_s is None:
            self.told.emit("Nothing to pin yet: measure a run first.", "warning")
            return
        assert self.experiment is not None
        self._take_baseline(self.experiment, run.run_id)
        self.settings.baseline_run = run.run_id
        self.told.emit(f"Baseline: {run.name}. Later runs are shown beside it.", "info")

    def unpin(self) -> None:
        """Compare with nothing."""
        self.baseline = None
        self.settings.baseline_run = ""
        self.setup.baseline, self.setup.baseline_name = Variant(), ""
        self.baseline_changed.emit()
        self.setup_changed.emit()

    def _take_baseline(self, view: "ExperimentView | None", run_id: str) -> None:
        run = view.runs.get(run_id) if view is not None else None
        if run is None or run.started is None:
            return
        self.baseline = run
        self.setup.baseline, self.setup.baseline_name = run.started.variant, title_of(run.started.variant)
        self.baseline_changed.emit()
        self.setup_changed.emit()

    def shown_baseline(self) -> "RunView | None":
        """The run beside which the shown one stands: its own experiment's baseline first, else the pinned one."""
        if self.experiment is None:
            return None
        current, own = self.experiment.current, self.experiment.own_baseline
        if own is not None and own is not current:
            return own
        return self.baseline if self.baseline is not current else None

    # ---------------------------------------------------------------------------------------------- library

    def replayed(self, experiment_id: str) -> "ExperimentView | None":
        """A stored experiment; None when the library does not hold it."""
        from gptscope.app.viewmodels.experiment_view import ExperimentView

        if self.library is None:
            return None
        records = self.library.records(experiment_id)
        return ExperimentView.replay(experiment_id, records) if records else None

    def reopen(self, run_id: str) -> bool:
        """Show a stored run: its records go through the same code as a live run's."""
        entry = self.library.find(run_id) if self.library is not None else None
        if entry is None:
            return False
        if self.running:
            self.told.emit("A run is going on; stop it before you open another.", "warning")
            return False
        view = self.replayed(entry.experiment_id)
        if view is None:
            return False
        view.chosen_run = run_id
        self.experiment, self.clock = view, None
        self.experiment_opened.emit()
        self.told.emit(f"Opened {run_title(entry.name, entry.variant)} as it was recorded.", "info")
        return True

    def pin_stored(self, run_id: str) -> None:
        """Make a stored run the baseline."""
        entry = self.library.find(run_id) if self.library is not None else None
        if entry is not None:
            self._take_baseline(self.replayed(entry.experiment_id), run_id)
            self.settings.baseline_run = run_id
            self.told.emit(f"Baseline: {run_title(entry.name, entry.variant)}.", "info")

    # ---------------------------------------------------------------------------------------------- records

    def _on_record(self, record: Message, payload: bytes) -> None:
        self._on_answer(record)
        if self.running:
            self._on_run_record(record, payload)

    def _on_run_record(self, record: Message, payload: bytes) -> None:
        assert self.experiment is not None
        assert self.clock is not None
        if self.library is not None:
            self.library.record(record, payload)  # type: ignore[arg-type]
        if isinstance(record, TraceChunk):
            return
        before = self.experiment.phase
        try:
            self.experiment.apply(record)  # type: ignore[arg-type]
        except Exception:  # a fault of ours must not keep the run from ending, nor what was measured from being kept
            logger.exception("%s could not be shown", type(record).__name__)
            self.told.emit("A part of this run cannot be shown, which is a fault of gptscope; it is kept.", "warning")
        if self.experiment.phase != before and self.experiment.phase in PHASE_SENTENCES and not self.stopping:
            self.told.emit(PHASE_SENTENCES[self.experiment.phase], "info")
        self.clock.tick(self.experiment.phase, time.monotonic())
        match record:
            case ExperimentStarted():
                self._open_runs = set(record.run_ids)
            case RunFinished():
                self._open_runs.discard(record.run_id)
            case Failure():
                self.failed.emit(record)
            case Notice():
                self.told.emit(record.message, record.level)
            case ExperimentFinished():
                self._run_ended()
            case _:
                pass

    def _run_ended(self) -> None:
        self.running = self.stopping = False
        self.running_changed.emit()
        if self.experiment is not None:
            self._tell_when_written(self.experiment.run_ids, _WRITTEN_TRIES)
        self._free()
        if self.model is not None and self.model.fetch_bytes is not None:
            self._ask("inspect", InspectModel(model=self.setup.model))  # the run may have fetched it

    def _tell_when_written(self, run_ids: tuple[str, ...], tries: int, seen: object = None) -> None:
        """Have the list of runs shown again whenever the recorder has written more about these runs."""
        if self.library is None:
            return
        entries = [self.library.find(run_id) for run_id in run_ids]
        now = [(entry.outcome, entry.headline) if entry is not None else None for entry in entries]
        if now != seen:
            self.library.changed.emit()
        complete = all(e is not None and e.outcome != "running" and e.headline.tokens_per_second for e in entries)
        if not complete and tries > 0:
            QTimer.singleShot(_WRITTEN_MS, self, lambda: self._tell_when_written(run_ids, tries - 1, now))

    def _on_ended(self, sentence: str) -> None:
        """The engine is gone: keep what was measured, say what happened, let the next Run start it again."""
        if self.running and self.experiment is not None:
            failure = Failure(
                kind="internal", message=sentence or "The engine ended.", detail=self.session.stderr_tail()
            )
            now = time.time_ns()
            runs = self._open_runs or {*self.experiment.run_ids}
            records: list[Message] = [failure]
            records += [RunFinished(run_id=run_id, outcome="failed", finished_unix_ns=now) for run_id in sorted(runs)]
            records.append(ExperimentFinished(experiment_id=self.experiment.experiment_id, outcome="failed"))
            for record in records:
                self._on_run_record(record, b"")
        elif sentence:
            self.told.emit(sentence, "error")
        was_working, self._busy_with = self._busy_with == "work", ""
        if was_working:
            self.work_changed.emit(Failure(kind="internal", message=sentence or "The engine ended."))
        self.fetch_changed.emit(None)
