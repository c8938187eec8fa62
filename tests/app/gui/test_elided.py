"""Texts that are cut off tell all of themselves."""

import pytest
from pytestqt.qtbot import QtBot

from gptscope.app.gui.widgets.basics import ElidedLabel

LONG = "3 near-ties apart, and more than fits into a tight card"


@pytest.fixture
def tight(qtbot: QtBot) -> ElidedLabel:
    made = ElidedLabel("short")
    qtbot.addWidget(made)
    made.resize(90, 20)
    made.show()
    return made


def test_a_text_that_comes_later_and_is_cut_off_is_in_the_tool_tip(tight: ElidedLabel) -> None:
    assert tight.toolTip() == ""
    tight.setText(LONG)
    assert tight.toolTip() == LONG
    tight.resize(900, 20)
    assert tight.toolTip() == ""


def test_a_tool_tip_of_its_own_stays_whatever_the_width(tight: ElidedLabel) -> None:
    tight.setToolTip("What it means.")
    assert tight.toolTip() == "What it means."
    tight.setText(LONG)
    assert tight.toolTip() == f"{LONG}\n\nWhat it means."
    tight.resize(900, 20)
    assert tight.toolTip() == "What it means."
