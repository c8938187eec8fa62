"""The strips around the views: tabs and buttons above them, the corner of the menu bar, the status bar."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QStatusBar, QWidget

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, ThemedIcons, button, label, set_text, style_label
from gptscope.app.gui.widgets.tab_bar import TabBar

_LEVEL_ICONS = {"info": ("info", "t2"), "warning": ("warning", "warn"), "error": ("error", "bad")}


class ViewBar(QWidget):
    """Above the views: their tabs, what is shown, the baseline, Export."""

    def __init__(
        self, names: tuple[str, ...], icons: ThemedIcons, *, show_setup: Callable[[], object], unpin: Callable[[], None]
    ) -> None:
        super().__init__()
        self.setProperty("bar", "true")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)  # Qt paints the style of plain widgets only
        self.setFixedHeight(37)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 12, 0)
        row.setSpacing(8)
        self.setup_button = button("Setup", show_setup, kind="tool", tip="Show Setup (Ctrl+B)")
        icons.on_button(self.setup_button, "sidebar", "t2", 14)
        self.setup_button.hide()
        self.tabs = TabBar()
        self.tabs.setAccessibleName("Views")
        for name in names:
            self.tabs.addTab(name)
        self._workload = ElidedLabel("", level=2, size=12)
        self._workload.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.baseline_button = button("", unpin, kind="tool", tip="Remove the baseline", name="Remove the baseline")
        icons.on_button(self.baseline_button, "pin", "t1", 14)
        self.export_button = button("Export", lambda: None, kind="tool", tip="Save the run or a chart", name="Export")
        icons.on_button(self.export_button, "export", "t1", 14)
        row.addWidget(self.setup_button)
        row.addWidget(self.tabs)
        row.addWidget(self._workload, 1)
        row.addWidget(self.baseline_button)
        row.addWidget(self.export_button)

    def set_export_menu(self, menu: QMenu) -> None:
        """What Export offers."""
        self.export_button.setMenu(menu)

    def add(self, widget: QWidget) -> None:
        """Put something behind everything else."""
        layout = self.layout()
        assert layout is not None
        layout.addWidget(widget)

    def show_workload(self, text: str) -> None:
        """Say what is shown."""
        set_text(self._workload, text)

    def show_baseline(self, name: str | None) -> None:
        """Name the pinned baseline; None: there is none."""
        self.baseline_button.setVisible(name is not None)
        if name is not None:
            self.baseline_button.setText(f"Baseline: {name}  ×")


class MenuCorner(QWidget):
    """Search and theme, beside the menus."""

    def __init__(self, icons: ThemedIcons, *, search: Callable[[], None], toggle_theme: Callable[[], None]) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 8, 3)
        row.setSpacing(4)
        self.search_button = button(
            "Commands, runs, models", search, kind="search", tip="Ctrl+K", name="Command palette"
        )
        icons.on_button(self.search_button, "search", "t3", 14)
        self.search_button.setFixedWidth(240)
        self.theme_button = button(
            "", toggle_theme, kind="flat", tip="Switch between dark and light", name="Switch theme"
        )
        row.addWidget(self.search_button)
        row.addWidget(self.theme_button)


class StatusLine:
    """A sentence with its icon at the left, a fact at the right of a status bar."""

    def __init__(self, bar: QStatusBar, theme: Theme) -> None:
        self._theme = theme
        bar.setFixedHeight(25)
        bar.setSizeGripEnabled(False)
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(10, 0, 0, 0)
        row.setSpacing(6)
        self._icon = QLabel()
        self.text = ElidedLabel("Starting the engine…", level=2, size=12)
        row.addWidget(self._icon)
        row.addWidget(self.text, 1)
        bar.addWidget(holder, 1)
        self.right = label("", level=3, size=12)
        self.right.setContentsMargins(0, 0, 10, 0)
        bar.addPermanentWidget(self.right)

    def tell(self, sentence: str, level: str) -> None:
        """Show a sentence: `info`, `warning` or `error`."""
        icon, token = _LEVEL_ICONS.get(level, _LEVEL_ICONS["info"])
        self._icon.setPixmap(self._theme.pixmap(icon, token, 14))
        set_text(self.text, sentence)
        style_label(self.text, level=2 if level == "info" else 1, size=12)
        self.text.setAccessibleName(f"{level}: {sentence}")
