"""Everything in the window is reached by keyboard, has a name, and shows that it has the focus."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDockWidget,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot
from tests_app_streams import comparison_records, experiment_records
from tests_app_traces import write_trace

from gptscope.app.gui.charts.pointed import Pointed
from gptscope.app.gui.dialogs import SettingsDialog
from gptscope.app.gui.views.compare_card import CompareCard
from gptscope.app.gui.window import COMPARE, HISTORY, LIVE, PROFILE, MainWindow
from gptscope.profiling.records import Failure

INTERACTIVE = (
    QAbstractButton, QAbstractItemView, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit, QTabBar, CompareCard,
)  # fmt: skip
MOST_STOPS = 150


def interactive(window: QWidget) -> Iterator[QWidget]:
    """What a mouse can act on now. Parts of a widget (a spin box's text, a table's header) belong to the whole."""
    for widget in window.findChildren(QWidget):
        pointed = isinstance(widget, Pointed) and widget._has_parts()
        if not (pointed or isinstance(widget, INTERACTIVE)):
            continue
        if not (widget.isVisible() and widget.isEnabled()) or isinstance(widget, QHeaderView):
            continue
        if isinstance(widget.parentWidget(), QAbstractSpinBox | QComboBox | QLineEdit | QTabBar | QDockWidget):
            continue
        if isinstance(widget.parentWidget(), QAbstractItemView):
            continue
        yield widget


def described(widget: QWidget) -> str:
    return f"{type(widget).__name__} {widget.accessibleName() or getattr(widget, 'text', lambda: '')()!r}"


def walk(window: QWidget, qtbot: QtBot, key: Qt.Key = Qt.Key.Key_Tab) -> list[QWidget]:
    """All stops of one round."""
    stops: list[QWidget] = []
    for _ in range(MOST_STOPS):
        focus = QApplication.focusWidget()
        assert focus is not None
        if focus in stops:
            return stops
        assert not focus.visibleRegion().isEmpty(), f"{described(focus)} has the focus out of sight"
        stops.append(focus)
        qtbot.keyClick(focus, key)
    raise AssertionError(f"no round after {MOST_STOPS} stops")


def siblings(widget: QWidget) -> set[QWidget]:
    """An exclusive group is one stop; arrow keys move inside it."""
    group = widget.group() if isinstance(widget, QAbstractButton) else None
    if group is None or not group.exclusive():
        return {widget}
    return {button for button in group.buttons() if button.isEnabled() and button.isVisible()}


def pixels(widget: QWidget, window: QWidget) -> np.ndarray:
    """The widget and two pixels around it, as the window shows them."""
    place = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size()).adjusted(-2, -2, 2, 2) & window.rect()
    image = window.grab(place).toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(bytes(image.constBits()), np.uint8).reshape(image.height(), image.width(), 4)[:, :, :3]


def bring_into_sight(widget: QWidget) -> None:
    """What Tab does by itself."""
    area = widget.parentWidget()
    while area is not None:
        if isinstance(area, QScrollArea):
            area.ensureWidgetVisible(widget)
        area = area.parentWidget()
    QApplication.processEvents()


def assert_focus_is_seen(window: QWidget, stops: list[QWidget]) -> None:
    for index, widget in enumerate(stops):
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        bring_into_sight(widget)
        with_focus = pixels(widget, window)
        stops[index - 1].setFocus(Qt.FocusReason.TabFocusReason)
        QApplication.processEvents()
        without = pixels(widget, window)
        assert with_focus.shape == without.shape
        changed = int((with_focus != without).any(axis=2).sum())
        assert changed >= 8, f"{described(widget)} does not show that it has the focus"


def check(window: QWidget, qtbot: QtBot, begin: QWidget) -> None:
    begin.setFocus(Qt.FocusReason.TabFocusReason)
    stops = walk(window, qtbot)
    reached = {one for stop in stops for one in siblings(stop)}
    missed = [described(widget) for widget in interactive(window) if widget not in reached]
    assert not missed, f"the keyboard does not reach {missed}"
    nameless = [f"{type(w).__name__} in {type(w.parentWidget()).__name__}" for w in stops if not named(w)]
    assert not nameless, f"without an accessible name: {nameless}"
    stops[0].setFocus(Qt.FocusReason.TabFocusReason)
    back = walk(window, qtbot, Qt.Key.Key_Backtab)
    assert set(back) == set(stops), "Shift+Tab goes the same way back"
    assert_focus_is_seen(window, stops)


def named(widget: QWidget) -> bool:
    return bool(widget.accessibleName() or (isinstance(widget, QAbstractButton) and widget.text()))


def feed(window: MainWindow, session: Any, records: list[Any]) -> None:
    window.controller.run()
    session.feed(*records)


@pytest.fixture
def active(window: MainWindow, qtbot: QtBot) -> MainWindow:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def test_the_first_screen_and_setup(active: MainWindow, qtbot: QtBot) -> None:
    check(active, qtbot, active.first.demo_button)


def test_live_with_a_failed_run(active: MainWindow, session: Any, qtbot: QtBot) -> None:
    active.controller.setup.set_workload(kind="generate", prompt="Call me")
    active.controller.setup_changed.emit()
    feed(active, session, experiment_records(workload=active.controller.setup.workload))
    active.controller.pin_current()
    active.controller.failed.emit(Failure(kind="internal", message="It broke.", detail="here"))
    active.show_view(LIVE)
    assert active.live is not None
    check(active, qtbot, active.live.speed.canvas)


@pytest.mark.parametrize("tab", [0, 1, 2])
def test_profile_with_each_table(tab: int, active: MainWindow, session: Any, qtbot: QtBot) -> None:
    feed(active, session, experiment_records())
    active.show_view(PROFILE)
    assert active.profile is not None
    active.profile.tables.tabs.setCurrentIndex(tab)
    check(active, qtbot, active.profile.tables.front())


def test_compare(active: MainWindow, session: Any, qtbot: QtBot) -> None:
    feed(active, session, comparison_records())
    active.show_view(COMPARE)
    assert active.compare is not None
    for _ in range(4):  # sizes that depend on widths settle, and with them a scroll bar
        QApplication.processEvents()
    check(active, qtbot, active.compare.cards[0])


@pytest.mark.parametrize("tab", ["kernels", "steps", "memory", "roofline"])
def test_trace_with_each_kind_of_chart(tab: str, active: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    active.tracing.open(write_trace(tmp_path / "run.json.gz"))
    view = active.tracing.view
    assert view is not None
    with qtbot.waitSignal(view.loader.finished, timeout=30_000):
        pass
    view.tables.show_tab(tab)
    qtbot.waitUntil(view.inspector.updatesEnabled, timeout=5_000)
    check(active, qtbot, view.timeline.canvas)


def test_history_with_a_chosen_and_a_deleted_run(active: MainWindow, session: Any, qtbot: QtBot) -> None:
    for name in ("one", "two"):
        feed(active, session, experiment_records(run_id=name, experiment_id=f"e-{name}"))
    history = active.history
    assert history is not None
    qtbot.waitUntil(lambda: len(history._entries) == 2, timeout=15_000)
    active.show_view(HISTORY)
    history.table.selectRow(0)
    history.delete()
    history.table.selectRow(0)
    qtbot.waitUntil(history.undo_button.isVisible, timeout=5_000)
    check(active, qtbot, history.table)


def test_the_settings(active: MainWindow, qtbot: QtBot) -> None:
    dialog = SettingsDialog(active)
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    check(dialog, qtbot, dialog.theme)
    dialog.reject()
    dialog.deleteLater()


def test_arrow_keys_move_inside_a_group_and_between_tabs(active: MainWindow, session: Any, qtbot: QtBot) -> None:
    feed(active, session, experiment_records())
    precision = active.dock.levers_form.findChildren(QAbstractButton)
    grouped = next(b for b in precision if b.accessibleName() == "Precision: FP32")
    grouped.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(grouped, Qt.Key.Key_Right)
    assert QApplication.focusWidget().accessibleName() == "Precision: BF16", "TF32 is not available here"
    active.tabs.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(active.tabs, Qt.Key.Key_Right)
    assert active.current_view() is active.profile


def test_the_views_keys_follow_the_order_of_their_tabs() -> None:
    from gptscope.app.gui.actions import ACTIONS
    from gptscope.app.gui.window import VIEWS

    listed = [(spec.id, spec.shortcut) for spec in ACTIONS if spec.group == "view"]
    assert listed == [(f"view_{name.lower()}", f"Ctrl+{number}") for number, name in enumerate(VIEWS, 1)]


def test_every_command_of_the_menus_is_in_reach_of_the_palette(active: MainWindow) -> None:
    from gptscope.app.gui.actions import ACTIONS
    from gptscope.app.gui.palette import CommandPalette

    palette = CommandPalette(active)
    offered = {entry.text for entry in palette._entries}
    for spec in ACTIONS:
        if active.actions_by_id[spec.id].isEnabled() and spec.id != "palette":
            assert spec.title.rstrip("…") in offered
    palette.deleteLater()
