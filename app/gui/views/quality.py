"""The Quality view: how much the output changed, where it comes from and what mends it, what it means in words."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.charts.chart_panel import ChartPanel
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.charts.layer_map_panel import LayerMapPanel
from gptscope.app.gui.charts.scale_panel import ScalePanel
from gptscope.app.gui.controller import Controller
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.views.quality_actions import QualityActions
from gptscope.app.gui.views.quality_buttons import QualityButtons
from gptscope.app.gui.views.quality_mix import MixPanel
from gptscope.app.gui.views.quality_text import DivergencePanel
from gptscope.app.gui.widgets.basics import ElidedLabel, Panel, ThemedIcons, button, label, repolish, set_text
from gptscope.app.gui.widgets.choice_combo import ChoiceCombo
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.quality_card import QualityCardView
from gptscope.app.gui.widgets.segmented import Segment
from gptscope.app.viewmodels import quality_mix
from gptscope.app.viewmodels.charts import layer_error, layer_map, loss_curves
from gptscope.app.viewmodels.quality import NOTHING, QualityPage, candidates, page
from gptscope.app.viewmodels.setup import title_of
from gptscope.app.viewmodels.variant_names import BASELINE
from gptscope.profiling.experiment import Variant

NARROW = 1000
"""Below this width of the view everything stands under each other."""
_MARGIN, _GAP, _CARDS = 12, 8, 5


class QualityView(QWidget):
    """Shows one candidate of the controller's experiment. `refresh` is called by the window's redraw timer."""

    def __init__(
        self, controller: Controller, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]
    ) -> None:
        super().__init__()
        self._controller, self._theme = controller, theme
        self.actions_of = QualityActions(controller)
        self.buttons = QualityButtons(controller, self.actions_of)
        self._page: QualityPage | None = None
        self._chosen = ""
        self._shown: tuple[object, ...] = ()
        self._kept: tuple[str, ...] = ()
        self._arranged: tuple[bool, bool] | None = None
        self.setObjectName("canvas")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_header())
        self._empty = label(NOTHING, level=3)
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._empty, 1)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        holder.setObjectName("canvas")
        body = QVBoxLayout(holder)
        body.setContentsMargins(_MARGIN, _GAP, _MARGIN, _GAP)
        body.setSpacing(_GAP)
        self._cards_row = QHBoxLayout()
        self._cards_row.setSpacing(_GAP)
        self.cards = [QualityCardView() for _ in range(_CARDS)]
        for card in self.cards:
            self._cards_row.addWidget(card, 1)
        body.addLayout(self._cards_row)
        body.addWidget(self._make_map_offer())
        self._grid = QGridLayout()
        self._grid.setSpacing(_GAP)
        body.addLayout(self._grid, 1)
        self._scroll.setWidget(holder)
        column.addWidget(self._scroll, 1)
        self._make_panels(theme, icons, export)
        theme.changed.connect(self.rewrite)
        controller.experiment_opened.connect(self._on_opened)
        controller.capabilities_changed.connect(self.rewrite)
        self._arrange()

    # ---------------------------------------------------------------------------------------------- parts

    def _make_header(self) -> QWidget:
        bar = QWidget()
        bar.setProperty("bar", "true")
        bar.setFixedHeight(37)
        row = QHBoxLayout(bar)
        row.setContentsMargins(_MARGIN, 0, _MARGIN, 0)
        row.setSpacing(8)
        self.candidate = ChoiceCombo("Candidate")
        self.candidate.setSizeAdjustPolicy(ChoiceCombo.SizeAdjustPolicy.AdjustToContents)
        self.candidate.setMinimumWidth(200)
        self.candidate.setMaximumWidth(400)
        self.candidate.picked.connect(self._choose)
        self.against, self.about = label("", bold=True), ElidedLabel("", level=2, size=12)
        self._icon, self.verdict = QLabel(), label("", size=12)
        self.verdict.setFixedHeight(20)
        self.verdict.setProperty("chip", "plain")
        row.addWidget(self.candidate)
        row.addWidget(label("against", level=2, size=12))
        row.addWidget(self.against)
        row.addWidget(self.about, 1)
        row.addWidget(self._icon)
        row.addWidget(self.verdict)
        row.addWidget(self.buttons)
        self._bar = bar
        return bar

    def _make_map_offer(self) -> QWidget:
        self._offer = Panel("Layer map")
        self.measure_map = button("Measure it", self._measure_map, kind="tool", name="Measure the layer map")
        self._offer.header.addWidget(self.measure_map)
        return self._offer

    def _make_panels(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        self.layer_map = LayerMapPanel(theme, icons, export)
        self.layer_map.chart.toggled.connect(self._toggle)
        self.mix = MixPanel(theme, icons, export)
        self.mix.counted.connect(self._count)
        self.mix.verify.connect(self._verify)
        self.mix.fill.connect(self._fill)
        self.text = DivergencePanel(theme, icons, export)
        self.layer_error = ChartPanel(
            "Error through the layers", theme, icons, help_key="layer_error", source="signal to error, dB",
            read_out=layer_error.read_out, export=export,
        )  # fmt: skip
        self.losses = ChartPanel(
            "Loss", theme, icons, help_key="loss_curves", source="nats per token",
            read_out=loss_curves.read_out, export=export,
        )  # fmt: skip
        self.scales = ScalePanel(theme, icons, export)

    def _places(self) -> tuple[tuple[QWidget, QWidget, int], ...]:
        """Left panel, right panel, least height of each row."""
        return (
            (self.losses, self.losses, 300),
            (self.layer_map, self.mix, 330),
            (self.text, self.layer_error, 300),
            (self.scales, self.scales, 250),
        )

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        narrow = self.width() < NARROW
        mapped = self._page is None or self._page.layer_map is not None
        if (narrow, mapped) == self._arranged:
            return
        self._arranged = narrow, mapped
        while self._grid.takeAt(0) is not None:
            pass
        for column in range(24):
            self._grid.setColumnStretch(column, 1)
        row = 0
        for left, right, _ in self._places():
            if left is right or narrow or not mapped:
                self._grid.addWidget(left, row, 0, 1, 24)
                row += 1
                if left is not right:
                    self._grid.addWidget(right, row, 0, 1, 24)
                    row += 1
            else:
                self._grid.addWidget(left, row, 0, 1, 17)
                self._grid.addWidget(right, row, 17, 1, 7)
                row += 1
        for left, right, least in self._places():
            left.setMinimumHeight(least)
            right.setMinimumHeight(least)

    # ---------------------------------------------------------------------------------------------- choosing

    def _on_opened(self) -> None:
        view = self._controller.experiment
        self._chosen, self._kept, self._shown = (view.chosen_run if view is not None else None) or "", (), ()
        self._page = None

    def _choose(self, run_id: str) -> None:
        self._chosen, self._shown = run_id, ()
        self.refresh()

    @property
    def available(self) -> bool:
        """Whether there is something to show."""
        view = self._controller.experiment
        return view is not None and view.output.any and bool(candidates(view))

    def _count(self, count: int) -> None:
        if self._page is not None and self._page.layer_map is not None:
            self._keep(quality_mix.worst(self._page.layer_map, count))

    def _toggle(self, module: str) -> None:
        kept = tuple(one for one in self._kept if one != module)
        self._keep(kept if len(kept) < len(self._kept) else (*kept, module))

    def _keep(self, kept: tuple[str, ...]) -> None:
        self._kept = kept
        self._show_map()

    # ---------------------------------------------------------------------------------------------- running

    def _mixed(self) -> Variant | None:
        if self._page is None or self._page.variant is None:
            return None
        return quality_mix.mixed_variant(self._page.variant, self._kept, self._controller.capabilities)

    def _fill(self) -> None:
        mixed = self._mixed()
        if mixed is not None and self._page is not None:
            self.actions_of.take(self._page, mixed)
            self._controller.told.emit(f"Setup now holds {title_of(mixed)}; Run verifies it.", "info")

    def _verify(self) -> None:
        mixed = self._mixed()
        if mixed is not None and self._page is not None:
            self.actions_of.run(self._page, mixed)

    def _measure_map(self) -> None:
        if self._page is not None and self._page.variant is not None:
            self.actions_of.run(self._page, self._page.variant, layer_map=True)

    # ---------------------------------------------------------------------------------------------- showing

    def rewrite(self) -> None:
        """Write everything anew (other colours, other digits)."""
        self._shown = ()
        self.refresh()

    def refresh(self) -> None:
        """Show what changed since the last call."""
        view = self._controller.experiment
        state = (view, view.output.revision if view is not None else 0, self._chosen, self._controller.running)
        if state == self._shown:
            return
        self._shown = state
        before, self._page = self._page, page(view, self._chosen)
        known = self._page is not None
        self._bar.setVisible(known)
        self._scroll.setVisible(known)
        self._empty.setVisible(not known)
        if self._page is not None:
            self._show_page(self._page, before)

    def _show_page(self, shown: QualityPage, before: QualityPage | None) -> None:
        self.candidate.set_choices([Segment(run_id, name, name) for run_id, name in shown.candidates])
        self.candidate.choose(shown.run_id)
        set_text(self.against, shown.baseline_name or "no baseline")
        set_text(self.about, shown.about)
        self._show_verdict(shown)
        self.buttons.show_page(shown)
        for index, widget in enumerate(self.cards):
            widget.setVisible(index < len(shown.cards))
            if index < len(shown.cards):
                widget.show_card(shown.cards[index])
        if shown.layer_map is not None and (before is None or before.layer_map is not shown.layer_map):
            measured = shown.quality.kl_mean if shown.quality is not None else None
            self._kept = quality_mix.worst(shown.layer_map, quality_mix.first_count(shown.layer_map, measured))
        self._show_map()
        has_text = shown.quality is not None and bool(shown.quality.prompts)
        self.text.setVisible(has_text)
        if has_text:
            self.text.show_quality(shown.quality, shown.baseline_name, f"{shown.letter} {shown.name}")
        training = any(shown.losses)
        self.losses.setVisible(training)
        if training:
            set_text(
                self.losses.source,
                f"nats per token, same data in the same order; grey: {shown.baseline_name}",
            )
            self.losses.show_chart(loss_curves.build(*shown.losses, shown.letter, BASELINE))
        self.scales.setVisible(bool(shown.scales))
        self.scales.show_scales(shown.scales)

    def _show_verdict(self, shown: QualityPage) -> None:
        if self.verdict.property("chip") != (shown.tone or "plain"):
            self.verdict.setProperty("chip", shown.tone or "plain")
            repolish(self.verdict)
        set_text(self.verdict, shown.verdict)
        self.verdict.setVisible(bool(shown.verdict))
        self._icon.setVisible(bool(shown.icon))
        self.verdict.setToolTip(shown.sentence)
        if shown.icon:
            self._icon.setPixmap(self._theme.pixmap(shown.icon, shown.tone or "t2", 14))

    def _show_map(self) -> None:
        shown = self._page
        if shown is None:
            return
        self._arrange()
        errors, running = shown.layer_map, self._controller.running
        known = errors is not None
        for panel in (self.layer_map, self.mix, self.layer_error):
            panel.setVisible(known)
        self._offer.setVisible(not known and bool(shown.baseline_name) and shown.quality is not None)
        set_text(self._offer.source, shown.not_mapped)
        self.measure_map.setVisible(not running and shown.can_map)
        if errors is None:
            return
        variant = shown.variant
        self.layer_map.show_map(errors, layer_map.build(errors, self._kept, shown.per))
        reason = quality_mix.reason_against(variant, self._controller.capabilities)
        int8 = variant is not None and variant.precision.startswith("int8")
        self.mix.show_mix(errors, self._kept, shown.speeds, int8=int8, reason=reason, busy=running)
        self.layer_error.show_chart(layer_error.build(errors, shown.letter, shown.other_maps))

    def exportables(self) -> list[Exportable]:
        """Everything visible here that can be saved as a picture."""
        panels = (self.layer_map, self.mix, self.text, self.layer_error, self.losses, self.scales)
        return [panel.exportable() for panel in panels if not panel.isHidden()]
