"""Numbers as people type them."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gptscope.app.gui.widgets.number_boxes import ExponentBox, WholeBox


@pytest.fixture
def rate(qtbot: QtBot) -> ExponentBox:
    box = ExponentBox()
    qtbot.addWidget(box)
    box.setRange(1e-7, 1.0)
    box.setValue(2e-5)
    return box


def typed(box: ExponentBox, text: str, qtbot: QtBot) -> float:
    box.selectAll()
    qtbot.keyClicks(box, text)
    qtbot.keyClick(box, Qt.Key.Key_Return)
    return box.value()


def test_a_small_number_is_shown_and_typed_with_an_exponent(rate: ExponentBox, qtbot: QtBot) -> None:
    assert rate.text() == "2e-05"
    assert typed(rate, "3e-4", qtbot) == 3e-4
    assert rate.text() == "0.0003"
    assert typed(rate, "0.00015", qtbot) == 1.5e-4


@pytest.mark.parametrize("text", ["5", "1e-9", "e", "abc", "-1"])
def test_what_is_out_of_range_or_no_number_is_not_taken(rate: ExponentBox, text: str, qtbot: QtBot) -> None:
    assert 1e-7 <= typed(rate, text, qtbot) <= 1.0
    assert rate.hasAcceptableInput()


def test_the_arrows_go_by_factors(rate: ExponentBox) -> None:
    rate.stepUp()
    assert rate.value() == 5e-5
    rate.stepUp()
    assert rate.value() == 1e-4
    for _ in range(30):
        rate.stepUp()
    assert rate.value() == 1.0
    rate.stepDown()
    assert rate.value() == 0.5


def test_scrolling_past_a_box_does_not_change_it(qtbot: QtBot) -> None:
    box = WholeBox()
    qtbot.addWidget(box)
    box.setValue(5)
    turn = QWheelEvent(
        QPointF(5, 5), QPointF(5, 5), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(box, turn)
    assert box.value() == 5
    assert not turn.isAccepted(), "the dock scrolls"
    assert not box.focusPolicy() & Qt.FocusPolicy.WheelFocus & ~Qt.FocusPolicy.StrongFocus
