"""The bar above the timeline: what is open, its health, search, measure, fit; while loading progress and cancel."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QProgressBar, QWidget

from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, button, label, repolish, set_text
from gptscope.app.gui.widgets.guarded import guarded


class SearchField(QLineEdit):
    """Enter goes to the next event found, Shift+Enter to the one before."""

    stepped = Signal(int)
    left = Signal()

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        elif event.key() == Qt.Key.Key_Escape:
            self.clear()
            self.left.emit()
        else:
            super().keyPressEvent(event)


class TraceHeader(QWidget):
    """One line of 36 pixels."""

    cancel_wanted = Signal()
    health_wanted = Signal()
    measure_toggled = Signal(bool)
    fit_wanted = Signal()

    def __init__(self, icons: ThemedIcons) -> None:
        super().__init__()
        self.setProperty("bar", "true")
        self.setFixedHeight(36)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(8)
        self.name, self.about = label("No trace yet", bold=True), ElidedLabel("", level=2, size=12)
        self.health = button("", self.health_wanted.emit, kind="link", tip="Show every finding")
        self.health.hide()
        row.addWidget(self.name)
        row.addWidget(self.health)
        row.addWidget(self.about, 1)
        self.stage = label("", level=2, size=12)
        self.progress = QProgressBar()
        self.progress.setRange(0, 1000)
        self.progress.setTextVisible(False)
        self.progress.setFixedWidth(160)
        self.progress.setAccessibleName("Progress of opening the trace")
        self.cancel = button("Cancel", self.cancel_wanted.emit, kind="tool", name="Cancel opening the trace")
        for widget in (self.stage, self.progress, self.cancel):
            row.addWidget(widget)
        self.search = SearchField()
        self.search.setPlaceholderText("Search events")
        self.search.setAccessibleName("Search events")
        self.search.setClearButtonEnabled(True)
        self.search.setFixedSize(200, 26)
        self.found = label("", level=3, size=12)
        self.measure = button("Measure", lambda: self.measure_toggled.emit(self.measure.isChecked()), kind="tool")
        self.measure.setToolTip("Click two moments to see the time between them (M)")
        self.measure.setCheckable(True)
        self.fit = button("Fit", self.fit_wanted.emit, kind="tool", tip="The selected range, or the whole trace (F)")
        icons.on_button(self.fit, "search", "t2", 12)
        for tool in (self.search, self.found, self.measure, self.fit):
            row.addWidget(tool)
        self.show_progress("", None)

    def show_progress(self, stage: str, share: float | None) -> None:
        """How far opening is; None: nothing is being opened."""
        for widget in (self.stage, self.progress, self.cancel):
            widget.setVisible(share is not None)
        if share is not None:
            set_text(self.stage, f"{stage}…")
            self.progress.setUpdatesEnabled(False)  # a bar paints at once, and with it all that waits to be painted
            self.progress.setValue(round(1000 * share))
            self.progress.setUpdatesEnabled(True)

    def show_health(self, text: str, tone: str) -> None:
        """Show the health in a few words; empty hides it."""
        self.health.setVisible(bool(text))
        self.health.setText(text)
        self.health.setAccessibleName(f"Health: {text}")
        if self.health.property("tone") != tone:
            self.health.setProperty("tone", tone)
            repolish(self.health)
