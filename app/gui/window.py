"""The window: menus, view tabs, Setup dock, status bar. Assembles parts, holds no logic of its own."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from gptscope.app.gui.actions import ActionSet
from gptscope.app.gui.commands import Commands
from gptscope.app.gui.comparing import Comparing
from gptscope.app.gui.controller import Controller
from gptscope.app.gui.forms.setup_dock import SetupDock
from gptscope.app.gui.settings import Settings
from gptscope.app.gui.strips import MenuCorner, StatusLine, ViewBar
from gptscope.app.gui.surroundings import Surroundings
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.tracing import Tracing, looks_like_trace
from gptscope.app.gui.views.first import FirstScreen
from gptscope.app.gui.widgets.basics import ThemedIcons
from gptscope.app.gui.widgets.guarded import guarded

if TYPE_CHECKING:
    from gptscope.app.gui.views.compare import CompareView
    from gptscope.app.gui.views.history import HistoryView
    from gptscope.app.gui.views.live import LiveView
    from gptscope.app.gui.views.profile import ProfileView
    from gptscope.app.gui.views.quality import QualityView

REDRAW_MS = 33
_UNPAINTED_MS = 1000
VIEWS = ("Live", "Profile", "Compare", "Quality", "Trace", "History")
LIVE, PROFILE, COMPARE, QUALITY, TRACE, HISTORY = range(6)


class MainWindow(QMainWindow):
    """Shows a shell at once; the views with their charts are made right after its first paint."""

    TRACE = TRACE
    ready = Signal()  # the views exist

    def __init__(
        self, controller: Controller, theme: Theme, settings: Settings, *, library: Path | None = None
    ) -> None:
        """`library`: where runs are kept in this start, instead of the folder in the settings."""
        super().__init__()
        self._library_folder = library
        self.controller, self.theme, self.settings = controller, theme, settings
        self.icons = ThemedIcons(theme, self)
        self.live: LiveView | None = None
        self.profile: ProfileView | None = None
        self.compare: CompareView | None = None
        self.quality: QualityView | None = None
        self.history: HistoryView | None = None
        self.comparing = Comparing(controller)
        self.tracing = Tracing(self)
        self._painted = self._begun = False
        self._in_narrow_view = False
        self._dock_elsewhere = False  # whether Setup is shown in the other kind of view
        self.setObjectName("window")
        self.setWindowTitle("gptscope")
        self.setMinimumSize(960, 600)
        self._fit_screen()
        self.setAcceptDrops(True)
        self.commands = Commands(self)
        self.actions_by_id = ActionSet(self, self.commands.handlers())
        self._trace_menu = self.actions_by_id.fill(self.menuBar())["Trace"]
        self.dock = SetupDock(controller, theme, self.icons)
        self.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, self.dock)
        self._make_centre()
        self._make_corner()
        self._make_status_bar()
        self._redraw = QTimer(self)
        self._redraw.setInterval(REDRAW_MS)
        self._redraw.timeout.connect(self._on_tick)
        self._wire()
        self._restore_layout()

    # ---------------------------------------------------------------------------------------------- parts

    def _make_centre(self) -> None:
        centre = QWidget()
        centre.setObjectName("canvas")
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.bar = bar = ViewBar(
            VIEWS, self.icons, show_setup=lambda: self.dock.show(), unpin=lambda: self.controller.unpin()
        )
        bar.set_export_menu(self.actions_by_id.submenu(bar.export_button, "Export"))
        self.tabs, self.setup_button = bar.tabs, bar.setup_button
        self.baseline_button, self.export_button = bar.baseline_button, bar.export_button
        for hidden in (COMPARE, QUALITY, TRACE):
            self.tabs.setTabVisible(hidden, False)  # until there is something to show
        column.addWidget(bar)
        self.stack = QStackedWidget()
        self.first = FirstScreen(self.controller, self.theme, self.icons, self.commands.handlers())
        self.stack.addWidget(self.first)
        column.addWidget(self.stack, 1)
        self.setCentralWidget(centre)
        self.tabs.currentChanged.connect(self.show_view)

    def _make_corner(self) -> None:
        corner = self._corner = MenuCorner(  # the menu bar alone does not keep it alive
            self.icons, search=self.commands.open_palette, toggle_theme=self.commands.toggle_theme
        )
        self.theme_button = corner.theme_button
        if sys.platform == "darwin":  # the menu bar is the system's there
            self.bar.add(corner)
        else:
            self.menuBar().setCornerWidget(corner)
            corner.show()

    def _make_status_bar(self) -> None:
        self._status = StatusLine(self.statusBar(), self.theme)
        self.status_text, self.status_right = self._status.text, self._status.right

    def _wire(self) -> None:
        controller = self.controller
        controller.told.connect(self.tell)
        controller.running_changed.connect(self._on_running)
        controller.experiment_opened.connect(self._on_opened)
        controller.baseline_changed.connect(self._on_redraw)
        self.comparing.changed.connect(self._on_comparing)
        self._surroundings = Surroundings(self)
        self._on_running()
        self._on_comparing()
        self.actions_by_id["view_trace"].setEnabled(False)
        self.tracing.attach(self._trace_menu)
        self.tracing.show_actions()

    # ---------------------------------------------------------------------------------------------- start

    @guarded
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._begun:
            self.first.demo_button.setFocus()
            QTimer.singleShot(_UNPAINTED_MS, self._begin)  # a window that starts minimised is not painted

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self._begin)  # after this paint is on the screen

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._after_first_paint()

    def _after_first_paint(self) -> None:
        """Everything heavy: numpy, charts, library, engine. The window is on the screen already."""
        from gptscope.app.gui.library_access import LibraryAccess
        from gptscope.app.gui.views.compare import CompareView
        from gptscope.app.gui.views.history import HistoryView
        from gptscope.app.gui.views.live import LiveView
        from gptscope.app.gui.views.profile import ProfileView
        from gptscope.app.gui.views.quality import QualityView

        self.controller.begin()
        self.live = LiveView(self.controller, self.theme, self.icons, self.commands.save_chart, self.commands.run)
        self.profile = ProfileView(self.controller, self.theme, self.icons, self.commands.save_chart)
        self.compare = CompareView(
            self.controller, self.comparing, self.theme, self.icons, self.commands.save_chart, self.commands.open_run
        )
        self.quality = QualityView(self.controller, self.theme, self.icons, self.commands.save_chart)
        self.history = HistoryView(self.controller, self.theme, self.icons, self.commands)
        for view in (self.live, self.profile, self.compare, self.quality, self.history):
            self.stack.addWidget(view)
        library = LibraryAccess(self._library_folder or self.settings.library_folder)
        library.changed.connect(self._on_library)
        self.controller.use_library(library)
        self._on_library()
        self.ready.emit()

    def _fit_screen(self) -> None:
        """1440 x 900, or what the screen has room for beside the window's frame."""
        room = QGuiApplication.primaryScreen().availableGeometry().size() - QSize(16, 48)
        self.resize(QSize(1440, 900).boundedTo(room))

    def _restore_layout(self) -> None:
        saved = self.settings.layout()
        if saved is not None:
            self.restoreGeometry(saved[0])
            self.restoreState(saved[1])
        self.resizeDocks([self.dock], [304], Qt.Orientation.Horizontal)

    # ---------------------------------------------------------------------------------------------- views

    def show_view(self, index: int) -> None:
        """Show one of `VIEWS`; Live is the first screen until something ran."""
        if self.tabs.currentIndex() != index:
            self.tabs.setCurrentIndex(index)  # comes back here
            return
        views = (self.profile, self.compare, self.quality, self.tracing.view, self.history)
        targets = (self._live_or_first(), *views)
        target = targets[index]
        if target is None:
            return
        focus = self.focusWidget()
        if focus is not None and self.stack.isAncestorOf(focus):
            self.stack.setFocus(Qt.FocusReason.OtherFocusReason)  # else Qt picks a neighbour and frames it
        self.stack.setCurrentWidget(target)
        self._place_dock(index)
        self.actions_by_id[f"view_{VIEWS[index].lower()}"].setChecked(True)
        self._on_redraw()

    def _place_dock(self, index: int) -> None:
        """Views of their own width: Setup is hidden there, unless one asks for it there."""
        narrow = index in (PROFILE, COMPARE, QUALITY, TRACE)
        if narrow != self._in_narrow_view:
            self._in_narrow_view = narrow
            wanted, self._dock_elsewhere = self._dock_elsewhere, not self.dock.isHidden()
            self.dock.setVisible(wanted)

    def _live_or_first(self) -> QWidget | None:
        return self.live if self.controller.experiment is not None and self.live is not None else self.first

    def current_view(self) -> QWidget:
        """The view in the centre."""
        return self.stack.currentWidget() or self.first

    def rewrite(self) -> None:
        """Write every figure anew, because they are written differently now."""
        for view in (self.live, self.profile, self.quality):
            if view is not None:
                view.rewrite()
        self.comparing.retell()
        self.controller.setup_changed.emit()
        self.first.refresh()
        self._on_library()

    def _on_tick(self) -> None:
        """30 times a second while something runs. Live has a pace of its own, so as not to slow the run down."""
        if self.live is not None and self.stack.currentWidget() is self.live:
            self._show_quality_tab()
            self.live.tick()
        else:
            self._on_redraw()

    def _on_redraw(self) -> None:
        self._show_quality_tab()
        current = self.stack.currentWidget()
        for view in (self.live, self.profile, self.compare, self.quality):
            if view is not None and view is current:
                view.refresh()

    def _on_opened(self) -> None:
        self.show_view(LIVE)
        self._on_redraw()

    def _on_running(self) -> None:
        if self.controller.running:
            self._redraw.start()
        else:
            self._redraw.stop()
            self._on_redraw()

    def tell(self, sentence: str, level: str = "info") -> None:
        """Show a sentence in the status bar."""
        self._status.tell(sentence, level)

    def _on_comparing(self) -> None:
        self.tabs.setTabVisible(COMPARE, self.comparing.available)
        self.actions_by_id["view_compare"].setEnabled(self.comparing.available)
        if self.current_view() is self.compare:
            self._on_redraw()

    def _show_quality_tab(self) -> None:
        available = self.quality is not None and self.quality.available
        if available != self.tabs.isTabVisible(QUALITY):  # Qt paints the tabs anew for every call
            self.tabs.setTabVisible(QUALITY, available)
        self.actions_by_id["view_quality"].setEnabled(available)

    def _on_library(self) -> None:
        self.first.refresh_recent()
        if self.history is not None:
            self.history.reload()
        self._surroundings.show_library()

    # ---------------------------------------------------------------------------------------------- drop and close

    @guarded
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        path = self._dropped_path(event)
        if path is not None:
            event.acceptProposedAction()
            trace = looks_like_trace(Path(path))
            self.tell(f"Drop to {'open this trace' if trace else 'choose this as the model'}.", "info")

    @guarded
    def dropEvent(self, event: QDropEvent) -> None:
        path = self._dropped_path(event)
        if path is not None and looks_like_trace(Path(path)):
            event.acceptProposedAction()
            self.tracing.open(Path(path))
        elif path is not None:
            event.acceptProposedAction()
            self.dock.show()
            self.dock.model_form.choose(path)

    @staticmethod
    def _dropped_path(event: QDragEnterEvent | QDropEvent) -> str | None:
        urls = event.mimeData().urls()
        local = [url.toLocalFile() for url in urls if url.isLocalFile()]
        return local[0] if len(local) == 1 else None

    @guarded
    def closeEvent(self, event: QCloseEvent) -> None:
        self._redraw.stop()
        if self._in_narrow_view:  # what is saved is the layout of Live
            self.show_view(LIVE)
        self.settings.save_layout(self.saveGeometry(), self.saveState())
        self.settings.sync()
        self.controller.close()
        self.tracing.close()
        super().closeEvent(event)
