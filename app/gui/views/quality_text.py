"""Where the text changes: the prompts, both continuations with the first difference marked, the baseline's margins."""

from collections.abc import Callable
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.charts.chart_panel import ChartPanel
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, label, set_text, style_label
from gptscope.app.gui.widgets.prompt_list import PromptList
from gptscope.app.viewmodels.charts import margins
from gptscope.app.viewmodels.quality_text import (
    LOOKS,
    Continuation,
    counts,
    divergence,
    first_changed,
    prompt_lines,
)
from gptscope.profiling.records import Quality

_NAMES = 104
_MARGINS = 112


class DivergencePanel(ChartPanel):
    """The chart of the panel, for hover and export, is the margins of the chosen prompt."""

    def __init__(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        super().__init__(
            "Where the text changes", theme, icons, help_key="divergence", source="first difference from the baseline",
            read_out=margins.read_out, export=export,
        )  # fmt: skip
        self._theme = theme
        self._quality: Quality | None = None
        self._index, self._names = 0, ("", "")
        self.body.removeWidget(self.canvas)
        row = QHBoxLayout()
        row.setSpacing(12)
        self.prompts = PromptList(theme)
        self.prompts.selectionModel().currentChanged.connect(lambda now, _before: self._choose(now.row()))
        line = QFrame()
        line.setProperty("rule", "true")
        line.setFixedWidth(1)
        row.addWidget(self.prompts)
        row.addLayout(self._make_texts(), 1)
        self.body.addLayout(row, 1)
        self.counts = QLabel()
        self.counts.setTextFormat(Qt.TextFormat.RichText)
        self.counts.setProperty("s", "12")
        self.header.insertWidget(2, self.counts)
        theme.changed.connect(self._retell)

    def _make_texts(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(4)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 8, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        grid.setColumnMinimumWidth(0, _NAMES)
        grid.setColumnStretch(1, 1)
        self.baseline_name, self.candidate_name = (
            ElidedLabel("", size=12, bold=True),
            ElidedLabel("", size=12, bold=True),
        )
        prompt_name = ElidedLabel("Prompt", level=2, size=12)
        self.prompt, self.baseline, self.candidate = (
            self._make_text(name) for name in ("Prompt", "Baseline", "Candidate")
        )
        for place, (name, text) in enumerate(
            ((prompt_name, self.prompt), (self.baseline_name, self.baseline), (self.candidate_name, self.candidate))
        ):
            name.setFixedWidth(_NAMES)
            name.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
            grid.addWidget(name, place, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(text, place, 1)
        grid.setRowStretch(3, 1)
        area.setWidget(holder)
        column.addWidget(area, 1)
        heads = QHBoxLayout()
        heads.addWidget(label("Margin of the baseline's choice, logits, token by token", level=2, size=12))
        self.sentence = ElidedLabel("", size=12, bold=True)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        heads.addWidget(self.sentence, 1)
        column.addLayout(heads)
        self.canvas.setFixedHeight(_MARGINS)
        column.addWidget(self.canvas)
        return column

    @staticmethod
    def _make_text(name: str) -> QLabel:
        text = QLabel()
        text.setTextFormat(Qt.TextFormat.RichText)
        text.setWordWrap(True)
        text.setAlignment(Qt.AlignmentFlag.AlignTop)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        text.setAccessibleName(name)
        return text

    def show_quality(self, quality: Quality | None, baseline: str, candidate: str) -> None:
        """Show a comparison; the first real change is chosen."""
        self._names = (baseline.partition(",")[0], candidate.partition(",")[0])
        if quality is not self._quality:
            self._quality = quality
            self._index = first_changed(quality)
            self.prompts.show_lines(prompt_lines(quality), self._index)
        self._retell()

    def _choose(self, index: int) -> None:
        if index >= 0 and index != self._index:
            self._index = index
            self._retell()

    def _retell(self) -> None:
        shown = divergence(self._quality, self._index)
        set_text(self.baseline_name, self._names[0])
        set_text(self.candidate_name, self._names[1])
        self.show_chart(margins.build(self._quality, self._index))
        self._show_counts()
        if shown is None:
            return
        tone = LOOKS[shown.outcome][1]
        set_text(self.prompt, self._plain(shown.prompt))
        set_text(self.baseline, self._marked(shown.baseline, "bg3", "t1"))
        set_text(self.candidate, self._marked(shown.candidate, f"{tone}Bg", tone))
        set_text(self.sentence, shown.sentence)
        style_label(self.sentence, size=12, bold=True, tone=tone if shown.outcome != "equal" else "good")  # type: ignore[arg-type]

    def _show_counts(self) -> None:
        parts = []
        for outcome, words in counts(self._quality):
            icon = {"equal": "✓", "near_tie": "=", "changed": "×"}[outcome]
            parts.append(f'<span style="color:{self._theme.hex(LOOKS[outcome][1])}">{icon}</span> {words}')
        set_text(self.counts, "&nbsp;&nbsp;&nbsp;".join(parts))

    def _plain(self, text: str, token: str = "t2") -> str:
        return f'<span style="color:{self._theme.hex(token)}">{_lines(text)}</span>'

    def _marked(self, text: Continuation, background: str, colour: str) -> str:
        token = _lines(text.token) if text.token.strip() else _lines(text.token).replace(" ", "␣") if text.token else ""
        box = (
            f'<span style="background-color:{self._theme.hex(background)};color:{self._theme.hex(colour)};'
            f'font-weight:600">{token}</span>'
            if token
            else ""
        )
        return self._plain(text.same) + box + self._plain(text.rest, "t1")


def _lines(text: str) -> str:
    """Text for a rich text label; leading blanks and line breaks survive."""
    return escape(text).replace("\n", "↵ ").replace("  ", "&nbsp; ")
