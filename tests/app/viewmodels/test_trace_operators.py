"""The Operators tab of an opened trace: by name, by shape, and from a row to its longest call."""

import json
from pathlib import Path

import pytest

from gptscope.app.viewmodels.tables import filtered_footer, filtered_rows
from gptscope.app.viewmodels.timeline_model import Timeline
from gptscope.app.viewmodels.trace_tables import TABLES
from gptscope.app.viewmodels.trace_targets import target_of
from gptscope.profiling.trace import open_trace

_CALLS = (("aten::mm", [4, 8], 10), ("aten::mm", [64, 8], 7), ("aten::mm", [4, 8], 12), ("aten::add", [64, 8], 20))
_SMALL, _LARGE = "4×8", "64×8"


@pytest.fixture
def timeline(tmp_path: Path) -> Timeline:
    """Few calls, of which those of one operator have two shapes."""
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": name,
            "pid": 1,
            "tid": 1,
            "ts": 100 * number,
            "dur": length,
            "args": {"Input Dims": [dims], "Input type": ["float"]},
        }
        for number, (name, dims, length) in enumerate(_CALLS)
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return Timeline(open_trace(path))


def test_operators_are_counted_by_name_and_by_name_and_shapes(timeline: Timeline) -> None:
    page = TABLES["operators"].make(timeline.linked)
    assert page.by_shape is not None
    for table, keys, total in (
        (page.table, ["aten::mm", "aten::add"], "2 operators"),
        (
            page.by_shape.table,
            [f"aten::mm\n{_SMALL}", f"aten::add\n{_LARGE}", f"aten::mm\n{_LARGE}"],
            "3 rows, 2 operators",
        ),
    ):
        assert list(table.keys) == keys
        assert table.footer[0] == total
        titles = [column.title for column in table.columns]
        assert table.footer[titles.index("Calls")] == "4"
        assert table.footer[titles.index("Self ms")] == "0.0490"
        left = filtered_footer(table, filtered_rows(table, "mm"))
        assert left[0] == f"{len(keys) - 1} of {len(keys)} rows"
        assert left[titles.index("Calls")] == "3"
        assert left[titles.index("Self ms")] == "0.0290"


def test_a_row_leads_to_the_longest_call_of_its_name_and_shapes(timeline: Timeline) -> None:
    def call(key: str) -> int | None:
        target = target_of(timeline, "operators", key)
        return target.row if target is not None else None

    assert call("aten::mm") == 2
    assert call(f"aten::mm\n{_SMALL}") == 2
    assert call(f"aten::mm\n{_LARGE}") == 1
    assert call("aten::mm\nfloat[5]") is None
