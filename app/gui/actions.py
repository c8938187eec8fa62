"""Everything one can do, as data: menus, toolbar buttons, shortcuts and the command palette are made from this."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget

MENUS = ("File", "Edit", "View", "Run", "Trace", "Window", "Help")


@dataclass(frozen=True, kw_only=True)
class ActionSpec:
    """One command. `group` makes it one of an exclusive set of checkable commands."""

    id: str
    title: str
    menu: Literal["File", "Edit", "View", "Run", "Trace", "Window", "Help"]
    shortcut: str = ""
    tip: str = ""
    submenu: str = ""
    group: str = ""
    checkable: bool = False
    separator_before: bool = False


ACTIONS: tuple[ActionSpec, ...] = (
    ActionSpec(
        id="demo",
        title="Run the demo",
        menu="File",
        shortcut="Ctrl+D",
        tip="FP32 against BF16, fused, on the bundled model",
    ),
    ActionSpec(id="open_folder", title="Choose a model folder…", menu="File", shortcut="Ctrl+L"),
    ActionSpec(id="open_file", title="Choose a model file…", menu="File", shortcut="Ctrl+Shift+L"),
    ActionSpec(
        id="save_model",
        title="Save model as a folder…",
        menu="File",
        tip="Setup's model, pruned as Setup says, in FP32",
    ),
    ActionSpec(
        id="open_trace", title="Open a trace…", menu="File", shortcut="Ctrl+O", tip="Any Kineto or Chrome trace"
    ),
    ActionSpec(id="export_chart_png", title="Chart as PNG…", menu="File", submenu="Export", separator_before=True),
    ActionSpec(id="export_chart_svg", title="Chart as SVG…", menu="File", submenu="Export"),
    ActionSpec(id="export_chart_pdf", title="Chart as PDF…", menu="File", submenu="Export"),
    ActionSpec(id="export_chart_csv", title="Chart's data as CSV…", menu="File", submenu="Export"),
    ActionSpec(
        id="export_trace", title="Run's trace (gzipped Kineto)…", menu="File", submenu="Export", separator_before=True
    ),
    ActionSpec(id="export_json", title="Run as JSON…", menu="File", submenu="Export", shortcut="Ctrl+E"),
    ActionSpec(id="export_kernels_csv", title="Kernel table as CSV…", menu="File", submenu="Export"),
    ActionSpec(id="export_steps_csv", title="Step samples as CSV…", menu="File", submenu="Export"),
    ActionSpec(id="settings", title="Settings…", menu="File", shortcut="Ctrl+,", separator_before=True),
    ActionSpec(id="quit", title="Quit", menu="File", shortcut="Ctrl+Q", separator_before=True),
    ActionSpec(id="copy_command", title="Copy setting as command", menu="Edit", shortcut="Ctrl+Shift+C"),
    ActionSpec(
        id="copy_table", title="Copy table rows", menu="Edit", tip="The chosen rows, or all, as tab-separated text"
    ),
    ActionSpec(id="undo_delete", title="Undo delete", menu="Edit", shortcut="Ctrl+Z"),
    ActionSpec(id="view_live", title="Live", menu="View", shortcut="Ctrl+1", group="view"),
    ActionSpec(id="view_profile", title="Profile", menu="View", shortcut="Ctrl+2", group="view"),
    ActionSpec(id="view_compare", title="Compare", menu="View", shortcut="Ctrl+3", group="view"),
    ActionSpec(id="view_quality", title="Quality", menu="View", shortcut="Ctrl+4", group="view"),
    ActionSpec(id="view_trace", title="Trace", menu="View", shortcut="Ctrl+5", group="view"),
    ActionSpec(id="view_history", title="History", menu="View", shortcut="Ctrl+6", group="view"),
    ActionSpec(id="toggle_setup", title="Setup", menu="View", shortcut="Ctrl+B", checkable=True, separator_before=True),
    ActionSpec(
        id="theme_system", title="Follow the system", menu="View", submenu="Theme", group="theme", separator_before=True
    ),
    ActionSpec(id="theme_dark", title="Dark", menu="View", submenu="Theme", group="theme"),
    ActionSpec(id="theme_light", title="Light", menu="View", submenu="Theme", group="theme"),
    ActionSpec(id="reset_zoom", title="Show the whole time axis", menu="View", shortcut="Ctrl+0"),
    ActionSpec(id="run", title="Run", menu="Run", shortcut="Ctrl+R"),
    ActionSpec(id="stop", title="Stop", menu="Run", shortcut="Esc"),
    ActionSpec(id="pin", title="Pin shown run as baseline", menu="Run", shortcut="Ctrl+P", separator_before=True),
    ActionSpec(id="unpin", title="Remove baseline", menu="Run"),
    ActionSpec(
        id="compare_runs",
        title="Compare selected runs",
        menu="Run",
        shortcut="Ctrl+M",
        tip="Hold the runs that are chosen in History against each other",
    ),
    ActionSpec(id="all_fusions", title="All fusions on", menu="Run", separator_before=True),
    ActionSpec(id="no_fusions", title="All fusions off", menu="Run"),
    ActionSpec(id="measure_peaks", title="Measure this machine's peaks again", menu="Run", separator_before=True),
    ActionSpec(
        id="show_timeline",
        title="Timeline",
        menu="Trace",
        shortcut="Ctrl+T",
        tip="Of the shown run, else the opened trace, else that of the newest kept run",
    ),
    ActionSpec(id="trace_diff", title="Compare with another trace…", menu="Trace"),
    ActionSpec(
        id="trace_board", title="Open in TensorBoard", menu="Trace", tip="Needs tensorboard and torch-tb-profiler"
    ),
    ActionSpec(id="trace_search", title="Search events", menu="Trace", shortcut="Ctrl+F", separator_before=True),
    ActionSpec(id="trace_measure", title="Measure between two moments", menu="Trace", tip="M on the timeline"),
    ActionSpec(id="trace_fit", title="Fit the range or the whole trace", menu="Trace", tip="F on the timeline"),
    ActionSpec(id="trace_shapes", title="Operators by shape or by name", menu="Trace"),
    ActionSpec(
        id="trace_to_chrome",
        title="For Perfetto (Chrome JSON)…",
        menu="Trace",
        submenu="Export trace",
        separator_before=True,
    ),
    ActionSpec(id="trace_to_tensorboard", title="For TensorBoard (folder)…", menu="Trace", submenu="Export trace"),
    ActionSpec(id="trace_to_csv", title="Table in front as CSV…", menu="Trace", submenu="Export trace"),
    ActionSpec(id="trace_to_npz", title="Table in front as numpy arrays…", menu="Trace", submenu="Export trace"),
    ActionSpec(id="trace_to_speedscope", title="For speedscope…", menu="Trace", submenu="Export trace"),
    ActionSpec(id="trace_to_folded", title="Folded stacks for flame graphs…", menu="Trace", submenu="Export trace"),
    ActionSpec(id="trace_to_markdown", title="Summary as Markdown…", menu="Trace", submenu="Export trace"),
    ActionSpec(id="reset_layout", title="Reset layout", menu="Window"),
    ActionSpec(id="fullscreen", title="Full screen", menu="Window", shortcut="F11", checkable=True),
    ActionSpec(id="palette", title="Command palette…", menu="Help", shortcut="Ctrl+K"),
    ActionSpec(id="glossary", title="What the numbers mean", menu="Help", shortcut="F1"),
    ActionSpec(id="about", title="About gptscope", menu="Help"),
)


class ActionSet:
    """The QActions of one window."""

    def __init__(self, window: QWidget, handlers: Mapping[str, Callable[[], object]]) -> None:
        """Make every action; a command without a handler is a programming error."""
        missing = {spec.id for spec in ACTIONS} ^ set(handlers)
        assert not missing, f"actions and handlers differ: {sorted(missing)}"
        self._actions: dict[str, QAction] = {}
        groups: dict[str, QActionGroup] = {}
        for spec in ACTIONS:
            action = QAction(spec.title, window)
            action.setObjectName(spec.id)
            if spec.shortcut:
                action.setShortcut(QKeySequence(spec.shortcut))
            tip = spec.tip or spec.title.rstrip("…")
            action.setStatusTip(tip)
            action.setCheckable(spec.checkable or bool(spec.group))
            if spec.group:
                groups.setdefault(spec.group, QActionGroup(window)).addAction(action)
            action.triggered.connect(lambda _checked=False, handler=handlers[spec.id]: handler())
            window.addAction(action)
            self._actions[spec.id] = action

    def __getitem__(self, action_id: str) -> QAction:
        return self._actions[action_id]

    def starting(self, prefix: str) -> list[str]:
        """Ids that begin so."""
        return [action_id for action_id in self._actions if action_id.startswith(prefix)]

    def fill(self, bar: QMenuBar) -> dict[str, QMenu]:
        """Build the menu bar; returns its menus by title."""
        menus = {title: bar.addMenu(title) for title in MENUS}
        submenus: dict[tuple[str, str], QMenu] = {}
        for spec in ACTIONS:
            menu = menus[spec.menu]
            if spec.submenu:
                key = (spec.menu, spec.submenu)
                if key not in submenus:
                    if spec.separator_before:
                        menu.addSeparator()
                    submenus[key] = menu.addMenu(spec.submenu)
                elif spec.separator_before:
                    submenus[key].addSeparator()
                menu = submenus[key]
            elif spec.separator_before:
                menu.addSeparator()
            menu.addAction(self._actions[spec.id])
        return menus

    def submenu(self, parent: QWidget, submenu: str) -> QMenu:
        """A menu with the actions of one submenu, for a button."""
        menu = QMenu(parent)
        for spec in ACTIONS:
            if spec.submenu == submenu:
                if spec.separator_before and not menu.isEmpty():
                    menu.addSeparator()
                menu.addAction(self._actions[spec.id])
        return menu
