"""The panel around the layer map: header with read-out and menu."""

from collections.abc import Callable

from PySide6.QtWidgets import QMenu

from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.charts.layer_map_chart import LayerMapChart
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import Panel, ThemedIcons, button, set_text
from gptscope.app.viewmodels.charts.layer_map import LayerMap, map_csv
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.profiling.records import LayerErrors

_TITLE = "Layer map"


class LayerMapPanel(Panel):
    """Hover values stand in the header."""

    def __init__(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        super().__init__(_TITLE, "KL added when only this module is quantized, nats")
        self._export = export
        self._errors: LayerErrors | None = None
        self.title.setToolTip(help_for("layer_map"))
        self.chart = LayerMapChart(theme)
        self.chart.setStatusTip("Click a cell to keep that module unquantized or to give it back.")
        self.chart.hovered.connect(lambda text: set_text(self.read_out, text))
        self.body.addWidget(self.chart, 1)
        self.menu_button = button("", self._open_menu, kind="flat", tip="Chart menu", name=f"{_TITLE}: chart menu")
        icons.on_button(self.menu_button, "more")
        self.header.addWidget(self.menu_button)

    def show_map(self, errors: LayerErrors, shown: LayerMap | None) -> None:
        """Show a map; `errors` is what it was made of, for the CSV."""
        self._errors = errors
        self.chart.show_map(shown)

    def exportable(self) -> Exportable:
        """This chart for the exporters."""
        return Exportable(_TITLE, self.chart, lambda: map_csv(self._errors))

    def _open_menu(self) -> None:
        menu = QMenu(self)
        for kind in ("png", "svg", "pdf", "csv"):
            text = f"Save as {kind.upper()}…" if kind != "csv" else "Save data as CSV…"
            menu.addAction(text, lambda kind=kind: self._export(self.exportable(), kind))  # type: ignore[misc]
        menu.exec(self.menu_button.mapToGlobal(self.menu_button.rect().bottomLeft()))
