"""The first screen: ways to begin, what this machine can and cannot do, recent runs."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, button, label, rule, wrapped
from gptscope.app.viewmodels.machine_facts import MachineFact, machine_facts
from gptscope.app.viewmodels.variant_names import run_title

CONTENT_WIDTH = 960
MODEL_TEXT = (
    "A Hugging Face folder, a GGUF file or a nanoGPT checkpoint. GPT-2, NeoX, Llama, Mistral and Qwen families."
)
BEGIN_TEXT = "Start with one of these, or drop a model or a trace anywhere on this window."
_ICONS = {"yes": ("check", "good"), "later": ("clock", "warn"), "no": ("cross", "t3")}


class FirstScreen(QScrollArea):
    """Shown in Live until something has run or was opened."""

    trace_wanted = Signal(str)  # a recent trace's path

    def __init__(
        self, controller: Controller, theme: Theme, icons: ThemedIcons, handlers: dict[str, Callable[[], object]]
    ) -> None:
        super().__init__()
        self._controller, self._theme, self._icons, self._handlers = controller, theme, icons, handlers
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        holder = QWidget()
        holder.setObjectName("canvas")
        outer = QHBoxLayout(holder)
        outer.setContentsMargins(24, 24, 24, 24)
        outer.addStretch(1)
        content = QWidget()
        content.setMaximumWidth(CONTENT_WIDTH)
        outer.addWidget(content, 100)
        outer.addStretch(1)
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 24, 0, 0)
        column.setSpacing(4)
        title = label("See what precision, fused kernels and a KV cache do to your GPT", size=22, bold=True)
        title.setWordWrap(True)
        column.addWidget(title)
        column.addWidget(label(BEGIN_TEXT, level=2, size=15))
        column.addSpacing(20)
        column.addLayout(self._make_cards())
        column.addSpacing(12)
        column.addLayout(self._make_lower())
        column.addStretch(1)
        self.setWidget(holder)
        controller.capabilities_changed.connect(self.refresh)
        controller.peaks_changed.connect(self.refresh)
        theme.changed.connect(self.refresh)
        self.refresh()

    def _make_cards(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(16)
        demo = self.demo_button = button("Run demo", self._handlers["demo"], kind="primary", tip="Ctrl+D")
        self._icons.on_button(demo, "play", "onAccent", 14)
        row.addWidget(
            self._card(
                "play",
                "Run the demo",
                "FP32 against BF16 on the bundled model, with fused kernels and a KV cache, measured alternately.",
                "A small GPT that this project trained on public-domain text. Needs no network. About one minute.",
                demo,
                chosen=True,
            )
        )
        choose = button("Choose a folder…", self._handlers["open_folder"], tip="Ctrl+L")
        self._icons.on_button(choose, "folder")
        row.addWidget(
            self._card(
                "chip",
                "Load a model",
                MODEL_TEXT,
                "No model at hand? The Model list in Setup has a catalogue, and shapes with random weights.",
                choose,
                chosen=False,
            )
        )
        trace = button("Open…", self._handlers["open_trace"], tip="Ctrl+O", name="Open a trace")
        self._icons.on_button(trace, "bars")
        row.addWidget(
            self._card(
                "bars",
                "Open a trace",
                "Any Kineto or Chrome trace from PyTorch and others: .json, .json.gz or .zip, also a damaged one.",
                "Timeline, kernels, operators, modules, gaps, advice, and export to Perfetto and more.",
                trace,
                chosen=False,
            )
        )
        return row

    def _card(self, icon: str, title: str, text: str, note: str, action: QWidget, *, chosen: bool) -> QFrame:
        frame = QFrame()
        frame.setProperty("panel", "chosen" if chosen else "true")
        column = QVBoxLayout(frame)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(8)
        head = QHBoxLayout()
        head.setSpacing(10)
        sign = label()
        self._icons.on_label(sign, icon, "accent" if chosen else "t2", 18)
        head.addWidget(sign)
        head.addWidget(label(title, size=15, bold=True))
        head.addStretch(1)
        column.addLayout(head)
        for content, level, size in ((text, 2, 13), (note, 3, 12)):
            line = wrapped(content, level=level, size=size)
            line.setAlignment(Qt.AlignmentFlag.AlignTop)
            column.addWidget(line)
        column.addStretch(1)
        column.addSpacing(8)
        action.setFixedHeight(32)
        column.addWidget(action, 0, Qt.AlignmentFlag.AlignLeft)
        return frame

    def _make_lower(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(16)
        self._machine = QFrame()
        self._machine.setProperty("panel", "true")
        self._machine_grid = QVBoxLayout(self._machine)
        self._machine_grid.setContentsMargins(0, 0, 0, 4)
        self._machine_grid.setSpacing(0)
        row.addWidget(self._machine, 1, Qt.AlignmentFlag.AlignTop)
        self._recent = QFrame()
        self._recent.setProperty("panel", "true")
        self._recent_list = QVBoxLayout(self._recent)
        self._recent_list.setContentsMargins(0, 0, 0, 4)
        self._recent_list.setSpacing(0)
        row.addWidget(self._recent, 1, Qt.AlignmentFlag.AlignTop)
        return row

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        """Show the machine and the recent runs."""
        _clear(self._machine_grid)
        self._heading(self._machine_grid, "This machine")
        for fact in machine_facts(self._controller.capabilities, self._controller.peaks):
            self._machine_grid.addWidget(rule())
            self._machine_grid.addWidget(self._fact(fact))
        self.refresh_recent()

    def refresh_recent(self) -> None:
        """Show the newest runs of the library."""
        _clear(self._recent_list)
        self._heading(self._recent_list, "Recent")
        library = self._controller.library
        entries = library.entries()[:6] if library is not None else ()
        traces = self._controller.settings.recent_traces[:3]
        if not entries and not traces:
            empty = label("No runs yet. Every run is kept, and can be reopened and repeated.", level=2, size=12)
            empty.setWordWrap(True)
            empty.setContentsMargins(12, 12, 12, 12)
            self._recent_list.addWidget(rule())
            self._recent_list.addWidget(empty)
        for entry in entries:
            self._recent_list.addWidget(rule())
            line = QWidget()
            row = QHBoxLayout(line)
            row.setContentsMargins(10, 2, 12, 2)
            opener = button(
                run_title(entry.name, entry.variant),
                partial(self._controller.reopen, entry.run_id),
                kind="link",
                tip="Reopen this run",
            )
            row.addWidget(opener)
            row.addWidget(ElidedLabel(f"{entry.model}, {entry.workload.kind}", level=3, size=12), 1)
            self._recent_list.addWidget(line)

        for path in traces:
            self._recent_list.addWidget(rule())
            line = QWidget()
            row = QHBoxLayout(line)
            row.setContentsMargins(10, 2, 12, 2)
            name = path.replace("\\", "/").rsplit("/", 1)[-1]
            row.addWidget(button(name, partial(self.trace_wanted.emit, path), kind="link", tip=f"Open {path}"))
            row.addWidget(ElidedLabel("trace", level=3, size=12), 1)
            self._recent_list.addWidget(line)

    def _heading(self, layout: QVBoxLayout, text: str) -> None:
        heading = label(text, bold=True)
        heading.setContentsMargins(12, 0, 12, 0)
        heading.setFixedHeight(32)
        layout.addWidget(heading)

    def _fact(self, fact: MachineFact) -> QWidget:
        line = QWidget()
        line.setMinimumHeight(26)
        row = QGridLayout(line)
        row.setContentsMargins(12, 3, 12, 3)
        row.setHorizontalSpacing(10)
        sign = label()
        icon, token = _ICONS[fact.state]
        sign.setPixmap(self._theme.pixmap(icon, token, 14))
        sign.setAccessibleName(_spoken(fact.state))
        row.addWidget(sign, 0, 0, Qt.AlignmentFlag.AlignTop)
        name = label(fact.name, level=2, size=12)
        name.setFixedWidth(128)
        row.addWidget(name, 0, 1, Qt.AlignmentFlag.AlignTop)
        text = wrapped(fact.text, size=12)
        row.addWidget(text, 0, 2, Qt.AlignmentFlag.AlignTop)
        row.setColumnStretch(2, 1)
        if fact.action:
            act = button(fact.action, self._handlers["measure_peaks"], kind="link")
            act.setProperty("tight", "true")  # as high as a line of text, so that both stand on one line
            row.addWidget(act, 0, 3, Qt.AlignmentFlag.AlignTop)
        return line


def _spoken(state: Literal["yes", "later", "no"]) -> str:
    return {"yes": "available", "later": "not yet", "no": "not available"}[state]


def _clear(layout: QVBoxLayout) -> None:
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()  # it is deleted only in the next turn of the event loop
            widget.deleteLater()
