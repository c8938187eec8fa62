"""A dialog that has the engine do one long thing to a model: progress, Stop, and comparing what came of it."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.problem_label import problem_label, show_problem
from gptscope.app.gui.widgets.basics import button, set_text, style_label, wrapped
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.path_field import PathField
from gptscope.app.viewmodels.progress_text import fraction_of, work_note
from gptscope.app.viewmodels.tuning import folder_problem
from gptscope.profiling.records import Failure, FineTune, Message, Progress, SaveModel

_FULL = 1000


class WorkDialog(QDialog):
    """Not modal: the window stays usable, but runs wait. A kind of work gives its form, request and result."""

    def __init__(self, parent: QWidget, controller: Controller, title: str, about: str, start: str) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setMinimumWidth(520)
        self._controller = controller
        self._working = False
        self._asked: str | None = None
        self.made = ""
        """The folder of the result; empty until there is one."""
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(10)
        column.addWidget(wrapped(about, level=2))
        self.form = QVBoxLayout()
        self.form.setSpacing(8)
        column.addLayout(self.form)
        self.progress = QProgressBar()
        self.progress.setRange(0, _FULL)
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(f"{title}: progress")
        self.progress.hide()
        self.note = wrapped("", level=2, size=12)
        column.addWidget(self.progress)
        column.addWidget(self.note)
        self.outcome = QVBoxLayout()
        column.addLayout(self.outcome)
        column.addStretch(1)
        self.foot = QHBoxLayout()
        self.start = button(start, self._begin, kind="primary")
        self.stop = button("Stop", controller.stop, tip="Stop it; nothing is saved (Esc)")
        self.close_button = button("Close", self.close)
        self.stop.setEnabled(False)
        self.foot.addWidget(self.start)
        self.foot.addWidget(self.stop)
        self.foot.addStretch(1)
        self.foot.addWidget(self.close_button)
        column.addLayout(self.foot)
        for one in (self.stop, self.close_button):
            one.setAutoDefault(False)  # Enter begins, and does not end what it began
        self.start.setDefault(True)
        controller.work_changed.connect(self._on_work)
        controller.running_changed.connect(self.check)

    # ---------------------------------------------------------------------------------------------- parts

    def add_folder(self, proposed: str) -> PathField:
        """The field for the new folder, with what is wrong with it below."""
        self.folder = PathField("New folder", self._pick_folder)
        self.folder.set_path(proposed)
        self.folder_problem = problem_label()
        self.folder.line.textChanged.connect(self.check)
        return self.folder

    @staticmethod
    def _pick_folder(parent: QWidget, before: str) -> str:
        return QFileDialog.getExistingDirectory(parent, "Save the model in an empty folder", before)

    def add_use(self, text: str, tip: str, use: Callable[[str], object]) -> None:
        """A button for the result, once there is one; the dialog closes with it."""

        def used() -> None:
            made = self.made
            self.close()
            use(made)

        self.use = button(text, used, tip=tip)
        self.use.setAutoDefault(False)
        self.use.setEnabled(False)
        self.foot.insertWidget(self.foot.count() - 1, self.use)

    # ---------------------------------------------------------------------------------------------- for each kind

    def problem(self) -> str:
        """What is wrong with the form, told at its fields; empty when it may begin."""
        wrong = folder_problem(self.folder.path())
        own = self.folder.path() == self._asked  # that it is not empty now is no mistake
        show_problem(self.folder_problem, "" if own else wrong)
        return wrong

    def request(self) -> FineTune | SaveModel:
        """What to ask the engine.

        Raises:
            ValueError: A value is impossible.
        """
        raise NotImplementedError

    def took(self, answer: Message) -> bool:
        """Show the answer; False when it is not this dialog's."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------- working

    def check(self) -> None:
        """Let Start be pressed when the form is right and nothing goes on."""
        wrong = self.problem()
        busy = "A run is going on; stop it first." if self._controller.running else ""
        self.start.setEnabled(not self._working and not wrong and not busy)
        self.start.setToolTip(wrong or busy)
        self._grow()

    def _begin(self) -> None:
        try:
            request = self.request()
        except ValueError as error:
            self.tell(str(error), "bad")
            return
        self._asked = self.folder.path()
        self._set_working(True)  # before the first progress comes
        problem = self._controller.work(request)
        if problem:
            self._asked = None
            self._set_working(False)
        self.tell(problem or "Starting", "bad" if problem else "")

    @guarded
    def reject(self) -> None:
        """Esc, Close and the window's cross stop the work first; the next one closes."""
        if self._working:
            self._controller.stop()
        else:
            super().reject()

    def _set_working(self, on: bool) -> None:
        self._working = on
        self.stop.setEnabled(on)
        self.progress.setVisible(on)
        self.progress.setValue(0)
        self.check()
        (self.stop if on else self.start).setFocus()

    def tell(self, text: str, tone: str = "") -> None:
        """A sentence below the form."""
        set_text(self.note, text)
        style_label(self.note, level=2 if not tone else 1, size=12, tone=tone)  # type: ignore[arg-type]
        self._grow()

    def _grow(self) -> None:
        """Make room for all lines of the sentences: a window of its own does not by itself."""
        layout = self.layout()
        assert layout is not None
        needed = layout.totalHeightForWidth(self.width())
        if needed > self.height():
            self.resize(self.width(), needed)

    def _on_work(self, record: object) -> None:
        if not self._working:  # somebody else's
            return
        if isinstance(record, Progress):
            self.progress.setValue(round(_FULL * (fraction_of(record) or 0.0)))
            self.tell(work_note(record))
        elif isinstance(record, Failure):
            self._asked = None
            self._set_working(False)
            self.tell(record.message, "bad" if record.kind != "cancelled" else "")
        elif isinstance(record, Message) and self.took(record):
            self._set_working(False)
            self.use.setEnabled(True)
            self.use.setFocus()
