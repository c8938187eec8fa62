"""A panel with one plot: header with read-out and menu, shared by all charts that draw `ChartData`."""

from collections.abc import Callable

from PySide6.QtWidgets import QMenu

from gptscope.app.gui.charts.canvas import PlotCanvas
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.charts.pointed import tell_in_header
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import Panel, ThemedIcons, button, set_text
from gptscope.app.viewmodels.chart_data import ChartData, chart_csv
from gptscope.app.viewmodels.help_texts import help_for


class ChartPanel(Panel):
    """One chart. `read_out(chart, x)` turns the hairline's place into the header's text."""

    def __init__(
        self,
        title: str,
        theme: Theme,
        icons: ThemedIcons,
        *,
        help_key: str,
        source: str = "",
        zoomable: bool = False,
        read_out: Callable[[ChartData, float], str] | None = None,
        export: Callable[[Exportable, str], object] | None = None,
    ) -> None:
        super().__init__(title, source)
        self._read_out = read_out
        self._export = export
        self.title.setToolTip(help_for(help_key))
        self.canvas = PlotCanvas(theme, zoomable=zoomable)
        self.canvas.setAccessibleName(title)
        self.body.addWidget(self.canvas, 1)
        self.canvas.hovered.connect(self.show_hover)
        tell_in_header(self.canvas, self)
        if export is not None:
            self.menu_button = button("", self._open_menu, kind="flat", tip="Chart menu", name=f"{title}: chart menu")
            icons.on_button(self.menu_button, "more")
            self.header.addWidget(self.menu_button)

    def show_chart(self, chart: ChartData) -> None:
        """Show new data."""
        self.canvas.show_chart(chart)

    def choose(self, key: str) -> None:
        """Point out one dot or symbol."""
        self.canvas.chosen_key = key
        self.canvas.update()

    def show_hover(self, x: float | None) -> None:
        """Put the hairline at `x` and its values into the header."""
        self.canvas.set_hover(x)
        text = self._read_out(self.canvas.chart, x) if x is not None and self._read_out is not None else ""
        set_text(self.read_out, text)

    def exportable(self) -> Exportable:
        """This chart for the exporters."""
        return Exportable(self.title.text(), self.canvas, lambda: chart_csv(self.canvas.chart))

    def _open_menu(self) -> None:
        assert self._export is not None
        menu = QMenu(self)
        for kind in ("png", "svg", "pdf", "csv"):
            text = f"Save as {kind.upper()}…" if kind != "csv" else "Save data as CSV…"
            menu.addAction(text, lambda kind=kind: self._export(self.exportable(), kind))  # type: ignore[misc]
        menu.exec(self.menu_button.mapToGlobal(self.menu_button.rect().bottomLeft()))
