"""Levers, generated from the capabilities record: what is unavailable is grey and says why."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.options_form import OptionsForm
from gptscope.app.gui.forms.precision_form import PrecisionForm
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import button, label, set_text
from gptscope.app.gui.widgets.choice_combo import ChoiceCombo
from gptscope.app.gui.widgets.guarded import guarded_as
from gptscope.app.gui.widgets.number_boxes import WholeBox
from gptscope.app.gui.widgets.segmented import Segment, Segmented
from gptscope.app.gui.widgets.switch import Switch
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.setup import COMPILE, Choice, all_fusions, choices, differences

_DOT = "  ●"
SHORT_TITLES = {"none": "none", "dynamic": "dynamic", "static": "static", "int8": "INT8"}
_GROUPS = {"pruning": "Pruning", "speculation": "Speculation"}


class LeversForm(QWidget):
    """Precision, fusions, KV cache, compile, pruning, speculation, threads; each with its settings."""

    def __init__(self, controller: Controller, theme: Theme) -> None:
        super().__init__()
        self._controller, self._theme = controller, theme
        self.switches: dict[str, Switch] = {}
        self._reasons: dict[QObject, str] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(self._make_heading())
        self._precision_label = label("Precision", size=12)
        self._precision_label.setToolTip(help_for("precision"))
        layout.addWidget(self._precision_label)
        self.precision_form = PrecisionForm(controller, theme)
        self.precision = self.precision_form.segments
        layout.addWidget(self.precision_form)
        layout.addLayout(self._make_fusion_heading())
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(0)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 1)
        layout.addLayout(self._grid)
        self.kv_cache, self._kv_label = Segmented("KV cache"), label("KV cache", size=12)
        self.kv_cache.chosen.connect(lambda name: self._set(kv_cache=name))
        self.compile, self._compile_label = Segmented("Compile"), label("Compile", size=12)
        self.compile.chosen.connect(self._on_compile)
        self.combos: dict[str, ChoiceCombo] = {}
        self._group_labels: dict[str, QLabel] = {}
        self.options = {group: OptionsForm(controller, theme, group) for group in ("kv_cache", "fusion", *_GROUPS)}
        for group, title in _GROUPS.items():
            self.combos[group], self._group_labels[group] = ChoiceCombo(title), label(title, size=12)
            self.combos[group].picked.connect(lambda name, group=group: self._set(**{group: name}))
        self.threads = self._make_threads()
        self._threads_label, self._cores = label("Threads", size=12), label("", level=3, size=12)
        self._add_rows(layout)
        self._waiting = label("Levers appear once the engine has looked at this machine.", level=3, size=12)
        self._waiting.setWordWrap(True)
        layout.addWidget(self._waiting)
        self._shown_when_known: tuple[QWidget, ...] = (
            self._legend, self._precision_label, self.precision_form, self._fusion_label, self.all_button, self._slash,
            self.none_button, self._kv_label, self.kv_cache, self._compile_label, self.compile, self._threads_label,
            self.threads, self._cores,
        )  # fmt: skip
        controller.capabilities_changed.connect(self.refresh)
        controller.setup_changed.connect(self.refresh)
        theme.changed.connect(self.refresh)  # the dots carry their colour in their text
        self.refresh()

    def _add_rows(self, layout: QVBoxLayout) -> None:
        """One row for each lever with a list or a number; its settings below it."""
        for key, text, widget, options in (
            ("kv_cache", self._kv_label, self.kv_cache, self.options["kv_cache"]),
            ("compile", self._compile_label, self.compile, self.options["fusion"]),
            *((group, self._group_labels[group], self.combos[group], self.options[group]) for group in _GROUPS),
            ("threads", self._threads_label, self.threads, None),
        ):
            text.setFixedWidth(88)
            text.setToolTip(help_for(key))
            row = QHBoxLayout()
            row.setSpacing(4)
            row.addWidget(text)
            row.addWidget(widget, 0 if key == "threads" else 1)
            if key == "threads":
                row.addWidget(self._cores, 1)
            layout.addLayout(row)
            if options is not None:
                layout.addWidget(options)

    def _make_heading(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.addWidget(label("Levers", level=2, size=12, bold=True))
        row.addStretch(1)
        self._legend = QLabel()
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        self._legend.setProperty("s", "12")
        row.addWidget(self._legend)
        return row

    def _make_fusion_heading(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(0)
        self._fusion_label, self._slash = label("Fusions", size=12), label("/", level=3, size=12)
        self._fusion_label.setToolTip(help_for("fusions"))
        row.addWidget(self._fusion_label)
        row.addStretch(1)
        self.all_button = button(
            "all", self._on_all, kind="link", tip="Switch on every fusion that works here", name="All fusions"
        )
        self.none_button = button("none", self._on_none, kind="link", tip="Plain textbook code", name="No fusions")
        row.addWidget(self.all_button)
        row.addWidget(self._slash)
        row.addWidget(self.none_button)
        return row

    def _make_threads(self) -> QSpinBox:
        spin = WholeBox()
        spin.setFixedHeight(28)
        spin.setFixedWidth(64)
        spin.setRange(1, 1)
        spin.setKeyboardTracking(False)
        spin.setAccessibleName("Threads")
        spin.setToolTip(help_for("threads"))
        spin.valueChanged.connect(self._on_threads)
        return spin

    # ---------------------------------------------------------------------------------------------- changing

    def _set(self, **changes: object) -> None:
        self._controller.setup.set_variant(**changes)
        self._controller.setup_changed.emit()

    def _fusion_order(self) -> tuple[str, ...]:
        return tuple(choice.name for choice in choices(self._controller.capabilities, "fusion", self._controller.setup))

    def _on_switch(self, name: str, on: bool) -> None:
        self._controller.setup.toggle_fusion(name, on=on, order=self._fusion_order())
        self._controller.setup_changed.emit()

    def _on_compile(self, name: str) -> None:
        self._on_switch(COMPILE, name == "on")

    def _on_all(self) -> None:
        setup = self._controller.setup
        chosen = all_fusions(self._controller.capabilities, setup.workload.kind)
        self._set(fusions=(*chosen, *(name for name in setup.variant.fusions if name == COMPILE)))

    def _on_none(self) -> None:
        self._set(fusions=())

    def _on_threads(self, value: int) -> None:
        capabilities = self._controller.capabilities
        default = capabilities.machine.physical_cores if capabilities is not None else None
        self._set(threads=None if value == default else value)

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        """Show capabilities and setup."""
        capabilities, setup = self._controller.capabilities, self._controller.setup
        known = capabilities is not None
        self._waiting.setVisible(not known)
        for widget in self._shown_when_known:
            widget.setVisible(known)
        if not known:
            for widget in (*self.combos.values(), *self._group_labels.values()):
                widget.hide()
            return
        accent = self._theme.hex("accent")
        grey = self._theme.hex("t3")
        self._legend.setText(
            f'<span style="color:{accent}">●</span><span style="color:{grey}"> differs from baseline</span>'
        )
        different = differences(setup.variant, setup.baseline, self._fusion_order())
        differs = self.precision_form.refresh()
        self._mark(self._precision_label, "Precision", differs=differs or "precision" in different)
        self._refresh_fusions()
        kinds = choices(capabilities, "kv_cache", setup)
        self.kv_cache.set_segments([_segment(choice, SHORT_TITLES.get(choice.name, choice.title)) for choice in kinds])
        self.kv_cache.choose(setup.variant.kv_cache)
        self._mark(self._kv_label, "KV cache", differs="kv_cache" in different and any(k.reason is None for k in kinds))
        self.options["kv_cache"].show_lever(setup.variant.kv_cache)
        for group, title in _GROUPS.items():
            self._refresh_group(group, title, differs=group in different)
        self._refresh_threads()
        self._mark(self._threads_label, "Threads", differs="threads" in different)

    def _refresh_group(self, group: str, title: str, *, differs: bool) -> None:
        """One list; a group without any choice here stays hidden."""
        setup = self._controller.setup
        found = choices(self._controller.capabilities, group, setup)
        chosen = next((choice for choice in found if choice.chosen), None)
        usable = chosen is not None and chosen.reason is None
        combo = self.combos[group]
        for widget in (combo, self._group_labels[group]):
            widget.setVisible(bool(found))
        nothing = [] if any(choice.name == "none" for choice in found) else [Segment("none", "none")]
        combo.set_choices([*nothing, *(_segment(choice, choice.title) for choice in found)])
        combo.choose(getattr(setup.variant, group) if usable else "none")
        self._mark(self._group_labels[group], title, differs=differs and (usable or chosen is None))
        self.options[group].show_lever(getattr(setup.variant, group) if usable else "")

    def _mark(self, text: QLabel, name: str, *, differs: bool) -> None:
        accent = self._theme.hex("accent")
        text.setTextFormat(Qt.TextFormat.RichText)
        set_text(text, f'{name} <span style="color:{accent}">&nbsp;●</span>' if differs else name)

    def _refresh_fusions(self) -> None:
        found = choices(self._controller.capabilities, "fusion", self._controller.setup)
        plain = [choice for choice in found if choice.name != COMPILE]
        if [choice.name for choice in plain] != list(self.switches):
            self._rebuild(plain)
        for choice in plain:
            self._show(self.switches[choice.name], choice)
        for widget in (self.all_button, self.none_button):
            widget.setEnabled(bool(plain))
        graph = next((choice for choice in found if choice.name == COMPILE), None)
        self.compile.setVisible(graph is not None)
        self._compile_label.setVisible(graph is not None)
        if graph is not None:
            self.compile.set_segments(
                [Segment("off", "off", "No graph compilation."), Segment("on", "on", graph.tip, graph.reason)]
            )
            self.compile.choose("on" if graph.chosen and graph.reason is None else "off")
            self._mark(self._compile_label, "Compile", differs=graph.differs)
        self.options["fusion"].show_lever(COMPILE if graph is not None and graph.chosen and not graph.reason else "")

    def _rebuild(self, found: list[Choice]) -> None:
        for old in self.switches.values():
            self._grid.removeWidget(old)
            self._reasons.pop(old, None)
            old.hide()
            old.deleteLater()
        self.switches = {}
        for index, choice in enumerate(found):
            switch = Switch(choice.title, self._theme)
            switch.clicked.connect(lambda on, name=choice.name: self._on_switch(name, on))
            switch.installEventFilter(self)
            self._grid.addWidget(switch, index // 2, index % 2)
            self.switches[choice.name] = switch

    def _show(self, switch: Switch, choice: Choice) -> None:
        switch.setEnabled(choice.reason is None)
        switch.setChecked(choice.chosen and choice.reason is None)
        switch.set_differs(choice.differs)
        switch.setToolTip(choice.reason or choice.tip)
        switch.setStatusTip(choice.reason or "")
        switch.setAccessibleDescription(choice.reason or choice.tip)
        self._reasons[switch] = choice.reason or ""

    def _refresh_threads(self) -> None:
        capabilities = self._controller.capabilities
        self.threads.blockSignals(True)
        if capabilities is not None:
            machine = capabilities.machine
            self.threads.setMaximum(max(machine.logical_cores, 1))
            self.threads.setValue(self._controller.setup.variant.threads or machine.physical_cores)
            set_text(self._cores, f"of {machine.physical_cores} cores")
        self.threads.setEnabled(capabilities is not None)
        self.threads.blockSignals(False)

    @guarded_as(False)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A disabled switch gets no hover of its own: tell its reason in the status bar."""
        if event.type() == QEvent.Type.Enter and self._reasons.get(watched):
            self._controller.told.emit(self._reasons[watched], "info")
        return super().eventFilter(watched, event)


def _segment(choice: Choice, title: str) -> Segment:
    return Segment(choice.name, title, choice.tip, choice.reason)
