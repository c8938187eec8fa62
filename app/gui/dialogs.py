"""Settings, glossary and about."""

import importlib.metadata
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gptscope.app.gui.theme import ThemeChoice
from gptscope.app.gui.widgets.basics import button, label
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.help_texts import help_texts
from gptscope.profiling.store.opening import default_folder

if TYPE_CHECKING:
    from gptscope.app.gui.window import MainWindow

_THEMES: tuple[tuple[str, ThemeChoice], ...] = (("Follow the system", "system"), ("Dark", "dark"), ("Light", "light"))


class SettingsDialog(QDialog):
    """Theme and digits at once; the library folder from the next start on."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._window = window
        self.setWindowTitle("Settings")
        self.setMinimumWidth(520)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(12)
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(10)
        self.theme = QComboBox()
        for text, choice in _THEMES:
            self.theme.addItem(text, choice)
        self.theme.setCurrentIndex(self.theme.findData(window.theme.choice))
        self.theme.setAccessibleName("Theme")
        form.addRow("Theme", self.theme)
        self.digits = QComboBox()
        for digits, example in zip(fmt.DIGITS, ("57.0, 2.31x", "57.02, 2.312x", "57.023, 2.3118x"), strict=True):
            self.digits.addItem(f"{digits} digits, as in {example}", digits)
        self.digits.setCurrentIndex(self.digits.findData(window.settings.digits))
        self.digits.setAccessibleName("Decimals")
        form.addRow("Decimals", self.digits)
        self.folder = QLineEdit(str(window.settings.library_folder or default_folder()))
        self.folder.setAccessibleName("Library folder")
        row = QHBoxLayout()
        row.addWidget(self.folder, 1)
        row.addWidget(button("Choose…", self._choose_folder, name="Choose the library folder"))
        form.addRow("Library folder", row)
        note = label(
            "Another folder is used from the next start on; runs already kept stay where they are.", level=3, size=12
        )
        note.setWordWrap(True)
        form.addRow("", note)
        self.profile = QCheckBox("Record a kernel profile after measuring")
        self.profile.setChecked(window.settings.profile_after_run)
        form.addRow("Run", self.profile)
        column.addLayout(form)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)

    def _choose_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Choose the library folder", self.folder.text())
        if folder:
            self.folder.setText(folder)

    @guarded
    def accept(self) -> None:
        window = self._window
        window.commands.choose_theme(self.theme.currentData())
        window.commands.choose_digits(self.digits.currentData())
        folder = Path(self.folder.text().strip()).expanduser()
        window.settings.library_folder = None if folder == default_folder() else folder
        window.settings.profile_after_run = self.profile.isChecked()
        window.settings.sync()
        super().accept()


class GlossaryDialog(QDialog):
    """Every metric and lever in two sentences, from the same texts as the tool tips."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("What the numbers mean")
        self.resize(640, 620)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 12)
        search = QLineEdit()
        search.setPlaceholderText("Search terms")
        search.setAccessibleName("Search terms")
        search.setClearButtonEnabled(True)
        top = QHBoxLayout()
        top.setContentsMargins(16, 12, 16, 0)
        top.addWidget(search)
        column.addLayout(top)
        area = QScrollArea()
        area.setWidgetResizable(True)
        inner = QWidget()
        inner.setProperty("fill", "bg1")
        terms = QVBoxLayout(inner)
        terms.setContentsMargins(16, 8, 16, 8)
        terms.setSpacing(4)
        self._terms: list[tuple[str, QWidget]] = []
        for entry in sorted(help_texts().values(), key=lambda text: text.title.casefold()):
            block = QWidget()
            lines = QVBoxLayout(block)
            lines.setContentsMargins(0, 0, 0, 10)
            lines.setSpacing(2)
            lines.addWidget(label(entry.title, bold=True))
            text = label(entry.text, level=2)
            text.setWordWrap(True)
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            lines.addWidget(text)
            terms.addWidget(block)
            self._terms.append((f"{entry.title} {entry.text}".casefold(), block))
        terms.addStretch(1)
        area.setWidget(inner)
        column.addWidget(area, 1)
        search.textChanged.connect(self._filter)

    def _filter(self, words: str) -> None:
        wanted = words.casefold().split()
        for text, block in self._terms:
            block.setVisible(all(word in text for word in wanted))


class AboutDialog(QDialog):
    """Versions, as one copies them into a report."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("About gptscope")
        self.setMinimumWidth(460)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(label(f"gptscope {_version('gptscope')}", size=15, bold=True))
        column.addWidget(
            label(
                "A profiler for GPT models. Apache-2.0. Icons are its own; the typeface Inter is under the OFL.",
                level=2,
                size=12,
            )
        )
        capabilities = window.controller.capabilities
        lines = [
            f"Python {platform.python_version()} on {platform.platform()}",
            f"Qt {qVersion()}, PySide6 {_version('PySide6-Essentials')}",
        ]
        if capabilities is not None:
            lines += [f"{name} {version}" for name, version in capabilities.versions.items()]
        text = label("\n".join(lines), level=2, size=12)
        text.setWordWrap(True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(text)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
