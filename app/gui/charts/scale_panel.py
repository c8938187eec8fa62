"""Largest value and scale of one tensor over the steps; the layer and the tensor are chosen in the header."""

from collections.abc import Callable

from gptscope.app.gui.charts.chart_panel import ChartPanel
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ThemedIcons
from gptscope.app.gui.widgets.choice_combo import ChoiceCombo
from gptscope.app.gui.widgets.segmented import Segment
from gptscope.app.viewmodels.charts import scale_history
from gptscope.app.viewmodels.output_records import ScaleCourse


class ScalePanel(ChartPanel):
    """One tensor at a time."""

    def __init__(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        super().__init__(
            "Largest value and scale", theme, icons, help_key="scale_history",
            source="amax, blue, and the largest value that its scale holds, grey",
            read_out=scale_history.read_out, export=export,
        )  # fmt: skip
        self._scales: dict[tuple[str, str], ScaleCourse] = {}
        self.layer, self.tensor = ChoiceCombo("Layer"), ChoiceCombo("Tensor")
        behind = self.header.indexOf(self.read_out) + 1
        for place, combo in enumerate((self.layer, self.tensor)):
            combo.setStyleSheet("QComboBox { min-height: 20px }")  # the header is lower than a form's row
            combo.setFixedHeight(24)
            combo.setMinimumWidth(160 if combo is self.layer else 96)
            combo.picked.connect(lambda _name: self._retell())
            self.header.insertWidget(behind + place, combo)

    def show_scales(self, scales: dict[tuple[str, str], ScaleCourse]) -> None:
        """Show a run's scales, keeping the chosen tensor when it has it."""
        self._scales = scales
        self._retell()

    def _retell(self) -> None:
        names = scale_history.layers(self._scales)
        self.layer.set_choices([Segment(name, name) for name in names])
        if self.layer.value() not in names:
            self.layer.choose(names[0] if names else "")
        kinds = scale_history.tensors(self._scales, self.layer.value())
        self.tensor.set_choices([Segment(kind, scale_history.TENSORS[kind]) for kind in kinds])
        course = self._scales.get((self.layer.value(), self.tensor.value()))
        self.show_chart(scale_history.build(course))
        if course is None:
            self.set_chip("")
            return
        count = scale_history.clipped(course)
        self.set_chip(
            f"clipped at {count} of {len(course.steps)} steps" if count else "never clipped",
            "warn" if count else "good",
        )
