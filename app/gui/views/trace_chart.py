"""The chart beside a table of Trace: one panel that draws whatever kind of chart the tab in front has."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QStackedWidget

from gptscope.app.gui.charts.bars_chart import BarsCanvas
from gptscope.app.gui.charts.canvas import PlotCanvas
from gptscope.app.gui.charts.columns_chart import ColumnsCanvas
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import Panel, ThemedIcons, button, set_text
from gptscope.app.viewmodels.chart_data import chart_csv
from gptscope.app.viewmodels.charts.bars import AnyChart, BarChart, ColumnChart, bars_csv, no_bars
from gptscope.app.viewmodels.trace_page import TraceChart

WAITING = TraceChart("Chart", "", no_bars("Being computed…"))


class TraceChartPanel(Panel):
    """Values under the pointer stand in the header; a click tells the key of what was clicked."""

    clicked = Signal(str)

    def __init__(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        super().__init__("Chart")
        self.setProperty("panel", "false")
        self.setProperty("fill", "bg1")
        self.setMinimumWidth(280)
        self._export = export
        self.source.elide = Qt.TextElideMode.ElideMiddle  # values stand at the end
        self.shown = WAITING
        self.bars, self.columns, self.plot = BarsCanvas(theme), ColumnsCanvas(theme), PlotCanvas(theme)
        self.stack = QStackedWidget()
        for canvas in (self.bars, self.columns, self.plot):
            self.stack.addWidget(canvas)
        self.body.addWidget(self.stack, 1)
        self.bars.clicked.connect(self.clicked)
        self.columns.clicked.connect(self.clicked)
        self.plot.clicked.connect(self.clicked)
        self.bars.told.connect(self._tell)
        self.columns.told.connect(self._tell)
        self.plot.told.connect(self._tell)
        self.plot.hovered.connect(self._on_hovered)
        self.menu_button = button("", self._open_menu, kind="flat", tip="Chart menu", name="Chart menu")
        icons.on_button(self.menu_button, "more")
        self.header.addWidget(self.menu_button)

    @property
    def canvas(self) -> BarsCanvas | ColumnsCanvas | PlotCanvas:
        """The one that draws now."""
        widget = self.stack.currentWidget()
        assert isinstance(widget, BarsCanvas | ColumnsCanvas | PlotCanvas)
        return widget

    def show_chart(self, shown: TraceChart, chosen_key: str) -> None:
        """Show the chart of a tab, with what is chosen in its table marked."""
        self.shown = shown
        chart: AnyChart = shown.chart
        if isinstance(chart, BarChart):
            self.bars.show_chart(chart)
            self.stack.setCurrentWidget(self.bars)
        elif isinstance(chart, ColumnChart):
            self.columns.show_chart(chart)
            self.stack.setCurrentWidget(self.columns)
        else:
            self.plot.show_chart(chart)
            self.plot.set_hover(None)
            self.stack.setCurrentWidget(self.plot)
        self.canvas.setAccessibleName(shown.title)
        set_text(self.title, shown.title)
        self.title.setToolTip(shown.tip)
        self.set_chip("" if chart.empty else shown.chip)
        self._tell("")
        self.mark(chosen_key)

    def mark(self, key: str) -> None:
        """Outline what belongs to a row of the table."""
        self.canvas.chosen_key = key
        self.canvas.update()

    def exportable(self) -> Exportable:
        """This chart for the exporters."""
        chart = self.shown.chart
        write = (lambda: bars_csv(chart)) if isinstance(chart, BarChart | ColumnChart) else (lambda: chart_csv(chart))
        return Exportable(self.shown.title, self.canvas, write)

    def _tell(self, text: str) -> None:
        set_text(self.source, text or ("" if self.shown.chart.empty else self.shown.source))

    def _on_hovered(self, x: float | None) -> None:
        read_out, chart = self.shown.read_out, self.shown.chart
        if read_out is None or isinstance(chart, BarChart | ColumnChart):
            return
        self.plot.set_hover(x)
        self._tell(read_out(chart, x) if x is not None else "")

    def _open_menu(self) -> None:
        menu = QMenu(self)
        for kind in ("png", "svg", "pdf", "csv"):
            text = f"Save as {kind.upper()}…" if kind != "csv" else "Save data as CSV…"
            menu.addAction(text, lambda kind=kind: self._export(self.exportable(), kind))  # type: ignore[misc]
        menu.exec(self.menu_button.mapToGlobal(self.menu_button.rect().bottomLeft()))
