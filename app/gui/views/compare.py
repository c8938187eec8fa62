"""The Compare view: a card per candidate, the waterfall of the chosen one, speed against output, figures of all."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QMenu, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.charts.chart_panel import ChartPanel
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.charts.pointed import tell_in_header
from gptscope.app.gui.charts.waterfall_chart import WaterfallCanvas, waterfall_csv
from gptscope.app.gui.comparing import Comparing
from gptscope.app.gui.controller import Controller
from gptscope.app.gui.tables.table_view import TableView
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.views.compare_card import CompareCard
from gptscope.app.gui.widgets.basics import ElidedLabel, Panel, ThemedIcons, button, label, set_text
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.segmented import Segment, Segmented
from gptscope.app.viewmodels.comparison import NOTHING
from gptscope.app.viewmodels.help_texts import help_for

if TYPE_CHECKING:
    from gptscope.app.viewmodels.charts.waterfall import Grouping
    from gptscope.app.viewmodels.comparison import Comparison

NARROW = 1360
"""Below this width the waterfall takes the whole width."""
_MARGIN, _GAP, _BAR = 12, 8, 10
_GROUPINGS = (Segment("module", "by module"), Segment("category", "by category"))


class CompareView(QWidget):
    """Shows what `Comparing` holds."""

    def __init__(
        self,
        controller: Controller,
        comparing: Comparing,
        theme: Theme,
        icons: ThemedIcons,
        export: Callable[[Exportable, str], object],
        open_run: Callable[[str, str], object],
    ) -> None:
        """`open_run` shows a run, given its id, in the view with the given name."""
        super().__init__()
        self._controller, self._comparing = controller, comparing
        self._theme, self._icons, self._export, self._open_run = theme, icons, export, open_run
        self._shown: Comparison | None = None
        self._chosen = 0
        self._narrow: bool | None = None
        self.cards: list[CompareCard] = []
        self.setObjectName("canvas")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_header())
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        holder.setObjectName("canvas")
        self._body = QVBoxLayout(holder)
        self._body.setContentsMargins(_MARGIN, _GAP, _MARGIN, _GAP)
        self._body.setSpacing(_GAP)
        self._make_cards_area()
        self.warnings = label("", level=2, size=12, tone="warn")
        self.warnings.setWordWrap(True)
        self._body.addWidget(self.warnings)
        self._lower = QGridLayout()
        self._lower.setSpacing(_GAP)
        self._make_waterfall()
        self._make_trade()
        self._make_figures()
        self._body.addLayout(self._lower, 1)
        self._scroll.setWidget(holder)
        column.addWidget(self._scroll, 1)
        theme.changed.connect(self._rebuild)
        controller.running_changed.connect(self._show_header)
        self._arrange(narrow=False)
        self.refresh()

    # ---------------------------------------------------------------------------------------------- parts

    def _make_header(self) -> QWidget:
        bar = QWidget()
        bar.setProperty("bar", "true")
        bar.setFixedHeight(37)
        row = QHBoxLayout(bar)
        row.setContentsMargins(_MARGIN, 0, _MARGIN, 0)
        row.setSpacing(12)
        self.title, self.about = label("", bold=True), ElidedLabel("", level=2, size=12)
        self.disturbed = label("", size=12)
        self.disturbed.setProperty("chip", "plain")
        self.disturbed.setFixedHeight(20)
        self.together_button = button(
            "Measure together", self._measure_together, kind="primary",
            tip="Run these settings again, alternately: only then is there an interval",
        )  # fmt: skip
        self.together_button.setFixedHeight(26)
        row.addWidget(self.title)
        row.addWidget(self.about, 1)
        row.addWidget(self.disturbed)
        row.addWidget(self.together_button)
        return bar

    def _make_cards_area(self) -> None:
        self._cards_area = QScrollArea()
        self._cards_area.setWidgetResizable(True)
        self._cards_area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._cards_area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        row = self._cards_holder = QWidget()
        row.setObjectName("canvas")
        self._cards_row = QHBoxLayout(row)
        self._cards_row.setContentsMargins(0, 0, 0, 0)
        self._cards_row.setSpacing(_GAP)
        self._cards_area.setWidget(row)
        self._body.addWidget(self._cards_area)

    def _make_waterfall(self) -> None:
        self.waterfall = Panel("Where the time went")
        self.waterfall.title.setToolTip(help_for("waterfall"))
        self.canvas = WaterfallCanvas(self._theme)
        self.grouping = Segmented("Waterfall")
        self.grouping.set_segments(_GROUPINGS)
        self.grouping.choose("module")
        self.grouping.setFixedWidth(180)
        self.grouping.chosen.connect(lambda _name: self._show_waterfall())
        self.waterfall.header.addWidget(self.grouping)
        self._menu_button = button(
            "", self._open_menu, kind="flat", tip="Chart menu", name="Where the time went: chart menu"
        )
        self._icons.on_button(self._menu_button, "more")
        self.waterfall.header.addWidget(self._menu_button)
        self.waterfall.body.addWidget(self.canvas, 1)
        tell_in_header(self.canvas, self.waterfall)

    def _make_trade(self) -> None:
        self.trade = ChartPanel(
            "Speed against output", self._theme, self._icons, help_key="speed_output",
            source="KL to the baseline, nats per token", export=self._export,
        )  # fmt: skip
        self.trade.canvas.setMinimumHeight(180)
        self.trade.canvas.clicked.connect(self._choose_run)
        self.missing = label("", level=2, size=12)
        self.missing.setWordWrap(True)
        self.trade.body.addWidget(self.missing)

    def _make_figures(self) -> None:
        self.figures = Panel("Figures", "ratio: candidate over baseline")
        self.table = TableView(self._theme, "Figures", row_height=24)
        self.figures.body.addWidget(self.table, 1)

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(narrow=self.width() < NARROW)
        self._fit_cards()

    def _arrange(self, *, narrow: bool) -> None:
        if narrow == self._narrow:
            return
        self._narrow = narrow
        while self._lower.takeAt(0) is not None:
            pass
        if narrow:
            self._lower.addWidget(self.waterfall, 0, 0, 1, 2)
            self._lower.addWidget(self.trade, 1, 0)
        else:
            self._lower.addWidget(self.waterfall, 0, 0, 2, 1)
            self._lower.addWidget(self.trade, 0, 1)
        self._lower.addWidget(self.figures, 1, 1)
        self._lower.setColumnStretch(0, 1 if narrow else 8)
        self._lower.setColumnStretch(1, 1 if narrow else 5)

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        """Show the comparison when it is another one."""
        comparison = self._comparing.comparison()
        if comparison is self._shown and comparison is not None:
            return
        kept = self._shown.candidates[self._chosen].run_id if self._shown is not None else ""
        self._shown = comparison
        ids = [one.run_id for one in comparison.candidates] if comparison is not None else []
        opened = self._controller.experiment.chosen_run if self._controller.experiment is not None else None
        wanted = next((run_id for run_id in (kept, opened) if run_id in ids), None)
        self._chosen = ids.index(wanted) if wanted is not None else 0
        self._rebuild()

    def _rebuild(self) -> None:
        while (item := self._cards_row.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()  # it is deleted only in the next turn of the event loop
                widget.deleteLater()
        self.cards = []
        comparison = self._shown
        for index, card in enumerate(comparison.cards if comparison is not None else ()):
            made = CompareCard(
                card,
                self._theme,
                self._icons,
                partial(self._comparing.make_baseline, card.run_id),
                partial(self._open_run, card.run_id, "profile"),
                partial(self._open_run, card.run_id, "live"),
            )
            made.chosen.connect(partial(self.choose, index))
            made.opened.connect(partial(self._open_run, card.run_id, "profile"))
            made.moved.connect(partial(self._move, index))
            self.cards.append(made)
            self._cards_row.addWidget(made, 1)
            made.show()  # a layout has no room for a widget that is not shown yet
        if not self.cards:
            empty = label(NOTHING, level=2)
            empty.setWordWrap(True)
            self._cards_row.addWidget(empty)
            empty.show()
        for part in (self.waterfall, self.trade, self.figures):
            part.setVisible(bool(self.cards))
        self._fit_cards()
        self._show_header()
        if comparison is not None:
            self.table.show_table(comparison.figures)
            self.trade.show_chart(comparison.speed_output.chart)
            set_text(self.missing, comparison.speed_output.missing)
            self.missing.setVisible(bool(self.missing.text()))
            several = len(comparison.cards) > 2
            set_text(self.figures.source, "green: better, red: worse" if several else "ratio: candidate over baseline")
            self.table.setMinimumHeight(26 + 24 * max(comparison.figures.rows, 3))
            self.choose(min(self._chosen, len(self.cards) - 1))

    def _fit_cards(self) -> None:
        """As high as the highest card; a scroll bar below when the cards need more width."""
        row, count = self._cards_holder, max(len(self.cards), 1)
        room = (self.width() - 2 * _MARGIN - _BAR - _GAP * (count - 1)) // count
        for card in self.cards:
            card.fit(room)
        self._cards_row.activate()
        height = row.sizeHint().height()
        wide = row.minimumSizeHint().width() > self.width() - 2 * _MARGIN - _BAR
        self._cards_area.setFixedHeight(height + (12 if wide else 0))

    def _show_header(self) -> None:
        comparison = self._shown
        set_text(self.title, comparison.title if comparison is not None else "Nothing to compare yet")
        set_text(self.about, comparison.about if comparison is not None else "")
        set_text(self.disturbed, comparison.disturbed if comparison is not None else "")
        self.disturbed.setVisible(bool(self.disturbed.text()))
        can = comparison is not None and comparison.together is not None
        self.together_button.setVisible(can)
        self.together_button.setEnabled(can and not self._controller.running)
        warnings = comparison.warnings if comparison is not None else ()
        set_text(self.warnings, "  ".join(warnings))
        self.warnings.setVisible(bool(warnings))

    def choose(self, index: int) -> None:
        """Show one candidate's waterfall."""
        self._chosen = index
        for place, card in enumerate(self.cards):
            card.set_chosen(place == index)
        self.trade.choose(self.cards[index].card.run_id)
        self._show_waterfall()

    def _choose_run(self, run_id: str) -> None:
        """A symbol was clicked: choose its card; the baseline has none."""
        ids = [card.card.run_id for card in self.cards]
        if run_id in ids:
            self.choose(ids.index(run_id))

    def _move(self, index: int, step: int) -> None:
        target = self.cards[(index + step) % len(self.cards)]
        target.setFocus(Qt.FocusReason.TabFocusReason)
        self._cards_area.ensureWidgetVisible(target)

    def _show_waterfall(self) -> None:
        comparison = self._shown
        if comparison is None:
            return
        grouping: Grouping = "category" if self.grouping.value() == "category" else "module"
        charts = [comparison.waterfall(index, grouping) for index in range(len(comparison.candidates))]
        chart = charts[self._chosen]
        self.canvas.keep_room(charts)
        self.canvas.show_chart(chart)
        text = f"{comparison.cards[self._chosen].letter} against {comparison.baseline.name}"
        if chart is not None:
            text += f", {chart.unit} per step, the profiler's own time left out"
        set_text(self.waterfall.source, text)

    # ---------------------------------------------------------------------------------------------- doing

    def _measure_together(self) -> None:
        if self._shown is not None and self._shown.together is not None:
            self._controller.start(self._shown.together)

    def exportables(self) -> list[Exportable]:
        """The charts here."""
        waterfall = Exportable(self.waterfall.title.text(), self.canvas, lambda: waterfall_csv(self.canvas.chart))
        return [waterfall, self.trade.exportable()]

    def copy_rows(self) -> int:
        """Copy the figures; returns how many rows."""
        return self.table.copy_rows()

    def _open_menu(self) -> None:
        menu = QMenu(self)
        for kind in ("png", "svg", "pdf", "csv"):
            text = f"Save as {kind.upper()}…" if kind != "csv" else "Save data as CSV…"
            menu.addAction(text, partial(self._export, self.exportables()[0], kind))
        menu.exec(self._menu_button.mapToGlobal(self._menu_button.rect().bottomLeft()))
