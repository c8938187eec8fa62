"""The Difference tab says beside its levels what the traces do not record."""

import json
from pathlib import Path

from pytestqt.qtbot import QtBot

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.views.trace_diff import TraceDiffPage
from gptscope.app.viewmodels.trace_diff import diff_page
from gptscope.profiling.trace import open_trace
from gptscope.profiling.trace.analysis import Linked, diff_traces
from gptscope.profiling.trace.analysis.diff import LEVELS


def test_what_is_not_recorded_stands_beside_the_levels(look: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "plain.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    path.write_text(json.dumps({"traceEvents": [event]}))
    linked = Linked.of(open_trace(path))
    page = TraceDiffPage(look)
    qtbot.addWidget(page)
    page.show_pages("after: x", {level: diff_page(diff_traces(linked, linked, level)) for level in LEVELS})
    assert page.about.text() == "after: x"
    page.levels.choose("module")
    page.levels.chosen.emit("module")
    assert page.about.text().startswith("after: x. Before: n/a, no modules recorded: record with")
    page.clear()
    assert page.about.text() == ""
