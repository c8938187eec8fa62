"""Model source: bundled, presets, catalogue, recent, folder or file; what it is once it is known."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QMenu,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, button, label, set_text, style_label
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.estimate import kv_bytes_per_token, weight_bytes
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.progress_text import fraction_of, progress_note
from gptscope.app.viewmodels.setup import model_facts
from gptscope.profiling.records import Progress

MODEL_FILES = "Models (*.gguf *.pt *.safetensors *.json);;All files (*)"


class ModelForm(QWidget):
    """Picker, download progress, facts. Writes the model into the controller's setup."""

    def __init__(self, controller: Controller, theme: Theme, icons: ThemedIcons) -> None:
        super().__init__()
        self._controller = controller
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        title = label("Model", level=2, size=12, bold=True)
        title.setToolTip(help_for("model"))
        layout.addWidget(title)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.picker = QComboBox()
        self.picker.setAccessibleName("Model")
        self.picker.setToolTip(help_for("model"))
        self.picker.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.picker.setMinimumContentsLength(12)
        self.picker.setMaxVisibleItems(20)
        self.picker.activated.connect(self._on_picked)
        row.addWidget(self.picker, 1)
        self.browse = button(
            "", self._open_menu, kind="icon", tip="Choose a model folder or file", name="Choose a model folder or file"
        )
        icons.on_button(self.browse, "folder")
        row.addWidget(self.browse)
        layout.addLayout(row)
        grid = QGridLayout()
        grid.setContentsMargins(0, 2, 0, 0)
        grid.setSpacing(0)
        grid.setHorizontalSpacing(8)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(1, 1)
        self._facts = [ElidedLabel("", level=2, size=12) for _ in range(4)]
        for index, fact in enumerate(self._facts):
            grid.addWidget(fact, index // 2, index % 2)
        layout.addLayout(grid)
        self._note = label("", level=3, size=12)
        self._note.setWordWrap(True)
        self._note.hide()
        layout.addWidget(self._note)
        self.fetch = button(
            "Fetch",
            self._on_fetch_clicked,
            tip="Download this model into the cache; once is enough",
            name="Fetch model",
        )
        icons.on_button(self.fetch, "download", "t1", 14)
        layout.addWidget(self.fetch)
        self._fetch_row = self._make_fetch_row()
        layout.addWidget(self._fetch_row)
        controller.capabilities_changed.connect(self.refresh_choices)
        controller.model_changed.connect(self.refresh)
        controller.setup_changed.connect(self.refresh)
        controller.fetch_changed.connect(self._on_fetch)
        self.refresh_choices()
        self.refresh()

    def _make_fetch_row(self) -> QWidget:
        holder = QWidget()
        layout = QVBoxLayout(holder)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        self._fetch_text = ElidedLabel("", level=2, size=12)
        self._fetch_bar = QProgressBar()
        self._fetch_bar.setTextVisible(False)
        self._fetch_bar.setAccessibleName("Download progress")
        self.stop_fetch = button(
            "Stop", self._controller.stop_fetch, kind="link", tip="Stop the download (Esc)", name="Stop the download"
        )
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._fetch_text, 1)
        row.addWidget(self.stop_fetch)
        layout.addLayout(row)
        layout.addWidget(self._fetch_bar)
        holder.hide()
        return holder

    def refresh_choices(self) -> None:
        """Fill the picker: bundled, recent, catalogue, presets."""
        capabilities, chosen = self._controller.capabilities, self._controller.setup.model
        self.picker.blockSignals(True)
        self.picker.clear()
        self._add_group("", [("Bundled model", "bundled")])
        recent = [s for s in self._controller.settings.recent_models if s != "bundled"]
        self._add_group("Recent", [(source_title(source), source) for source in recent])
        if capabilities is not None:
            self._add_group("Catalogue, fetched once", [(name, name) for name in capabilities.catalogue])
            self._add_group(
                "Shapes with random weights, speed only", [(p, f"preset:{p}") for p in capabilities.presets]
            )
        if self.picker.findData(chosen) < 0:
            self._add(source_title(chosen), chosen)
        self.picker.setCurrentIndex(self.picker.findData(chosen))
        self.picker.blockSignals(False)

    def _add_group(self, heading: str, items: list[tuple[str, str]]) -> None:
        if not items:
            return
        if heading:
            self.picker.insertSeparator(self.picker.count())
            self.picker.addItem(heading, None)
            self.picker.model().setData(  # a heading, not a choice
                self.picker.model().index(self.picker.count() - 1, 0), 0, Qt.ItemDataRole.UserRole - 1
            )
        for text, source in items:
            self._add(text, source)

    def _add(self, text: str, source: str) -> None:
        self.picker.addItem(text, source)
        if text != source:  # models in different folders may have the same name
            self.picker.setItemData(self.picker.count() - 1, source, Qt.ItemDataRole.ToolTipRole)

    def _on_picked(self, index: int) -> None:
        source = self.picker.itemData(index)
        if isinstance(source, str):
            self._controller.inspect(source)

    def choose(self, source: str) -> None:
        """Choose a source by name or path."""
        self._controller.inspect(source)
        self.refresh_choices()

    def _open_menu(self) -> None:
        menu = QMenu(self)
        menu.addAction("Hugging Face folder…", self.browse_folder)
        menu.addAction("GGUF, nanoGPT or safetensors file…", self.browse_file)
        menu.exec(self.browse.mapToGlobal(self.browse.rect().bottomLeft()))

    def browse_folder(self) -> None:
        """Ask for a folder and choose it."""
        folder = QFileDialog.getExistingDirectory(self, "Choose a model folder", str(Path.home()))
        if folder:
            self.choose(folder)

    def browse_file(self) -> None:
        """Ask for a file and choose it."""
        file, _ = QFileDialog.getOpenFileName(self, "Choose a model file", str(Path.home()), MODEL_FILES)
        if file:
            self.choose(file)

    def refresh(self) -> None:
        """Show what the model is, or why it cannot be used."""
        model, setup = self._controller.model, self._controller.setup
        if self.picker.currentData() != setup.model:
            self.refresh_choices()
        whole = f"{setup.model}\n\n" if Path(setup.model).is_absolute() else ""
        self.picker.setToolTip(f"{whole}{help_for('model')}")
        for fact in self._facts:
            fact.setVisible(model is not None)
        self._refresh_fetch()
        if model is None:
            problem = self._controller.model_problem
            style_label(self._note, level=3 if not problem else 1, size=12, tone="bad" if problem else "")
            set_text(self._note, problem or "Reading what this model is…")
            self._note.show()
            return
        variant = setup.variant
        facts = model_facts(model, variant.precision, weight_bytes(model, variant), kv_bytes_per_token(model, variant))
        for fact, text in zip(self._facts, (facts.shape, facts.parameters, facts.weights, facts.kv), strict=True):
            set_text(fact, text)
        problem = self._controller.fetch_problem
        style_label(self._note, level=1 if problem else 3, size=12, tone="bad" if problem else "")
        set_text(self._note, problem or " ".join(facts.notes))
        self._note.setVisible(bool(problem or facts.notes))

    def _refresh_fetch(self) -> None:
        """Offer the download when the model is not on this machine and nothing is on its way."""
        model = self._controller.model
        absent = model.fetch_bytes if model is not None else None
        self.fetch.setVisible(absent is not None and not self._controller.fetching)
        if absent is not None:
            self.fetch.setText(f"Fetch {fmt.quantity(absent, 'bytes')}")

    def _on_fetch_clicked(self) -> None:
        self._controller.fetch(self._controller.setup.model)

    def _on_fetch(self, progress: object) -> None:
        if self._fetch_row.isHidden() == (progress is not None):  # it begins or ends
            self._fetch_row.setVisible(progress is not None)
            self.refresh()
        if isinstance(progress, Progress):
            set_text(self._fetch_text, f"Fetching: {progress_note(progress) or progress.note}")
            fraction = fraction_of(progress)
            self._fetch_bar.setRange(0, 0 if fraction is None else 1000)
            if fraction is not None:
                self._fetch_bar.setValue(round(1000 * fraction))


def source_title(source: str) -> str:
    """A source as the picker shows it."""
    if source == "bundled":
        return "Bundled model"
    if source.startswith("preset:"):
        return f"{source[7:]} (random weights)"
    path = Path(source)
    return path.name if path.is_absolute() else source
