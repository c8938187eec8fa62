"""Keep the worst modules unquantized: how many, what it is predicted to bring, and one button that verifies it."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSlider

from gptscope.app.gui.charts.chart_panel import ChartPanel
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, button, label, set_text
from gptscope.app.viewmodels.quality_mix import MOST, Speeds, curve, describe
from gptscope.profiling.records import LayerErrors

_FIGURES = 3


class MixPanel(ChartPanel):
    """`counted` asks for the worst so many; the owner keeps the set, because cells can be clicked, too."""

    counted = Signal(int)
    verify = Signal()
    fill = Signal()

    def __init__(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        super().__init__(
            "Keep the worst", theme, icons, help_key="keep_worst", source="predicted KL, nats", export=export
        )
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Modules kept unquantized")
        self.slider.setFixedHeight(20)
        self.slider.setPageStep(1)
        self.slider.valueChanged.connect(self.counted.emit)
        self.body.insertWidget(0, self.slider)
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(3, 1)
        self._figures: list[tuple[QLabel, QLabel, QLabel, QLabel]] = []
        self._arrows: list[QLabel] = []
        for row in range(_FIGURES):
            name, before = label("", level=2, size=12), label("", level=2, size=12)
            after, how = label("", size=12, bold=True), label("", level=2, size=12)
            before.setAlignment(Qt.AlignmentFlag.AlignRight)
            how.setAlignment(Qt.AlignmentFlag.AlignRight)
            for column, widget in ((0, name), (1, before), (3, after), (4, how)):
                grid.addWidget(widget, row, column)
            self._arrows.append(label("→", level=3, size=12))
            grid.addWidget(self._arrows[-1], row, 2)
            self._figures.append((name, before, after, how))
        self.kept = ElidedLabel("", size=12)
        grid.addWidget(label("Kept", level=2, size=12), _FIGURES, 0)
        grid.addWidget(self.kept, _FIGURES, 1, 1, 4)
        self.body.addLayout(grid)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        self.verify_button = button(
            "Verify this mix", self.verify.emit, kind="primary", tip="Fill Setup with this mix, run it, compare it"
        )
        icons.on_button(self.verify_button, "play", "onAccent", 14)
        self.fill_button = button("Fill Setup", self.fill.emit, kind="link", tip="Only take this mix into Setup")
        self.reason = label("", level=2, size=12)
        self.reason.setWordWrap(True)
        buttons.addWidget(self.verify_button)
        buttons.addWidget(self.fill_button)
        buttons.addStretch(1)
        self.body.addWidget(self.reason)
        self.body.addLayout(buttons)
        self.canvas.setMinimumHeight(110)

    def show_mix(
        self, errors: LayerErrors, kept: tuple[str, ...], speeds: Speeds, *, int8: bool, reason: str | None, busy: bool
    ) -> None:
        """Show one set of kept modules. `reason`: why it cannot be run at all; `busy`: not just now."""
        mix = describe(errors, kept, speeds, int8=int8)
        self.slider.blockSignals(True)
        self.slider.setRange(0, min(MOST, len(errors.modules)))
        self.slider.setValue(len(kept))
        self.slider.blockSignals(False)
        set_text(self.read_out, mix.count)
        self.show_chart(curve(errors, kept, speeds))
        for index, widgets in enumerate(self._figures):
            found = mix.figures[index] if index < len(mix.figures) else ("", "", "", "")
            for widget, text in zip(widgets, found, strict=True):
                set_text(widget, text)
            self._arrows[index].setVisible(bool(found[0]))
        set_text(self.kept, mix.names)
        for one in (self.verify_button, self.fill_button):
            one.setEnabled(reason is None and bool(kept) and (one is self.fill_button or not busy))
            one.setToolTip(reason or ("Keep at least one module." if not kept else ""))
        set_text(self.reason, reason or "")
        self.reason.setVisible(reason is not None)

    def show_hover(self, x: float | None) -> None:
        """The header tells the number of kept modules; the curve has no read-out of its own."""
        self.canvas.set_hover(None)
