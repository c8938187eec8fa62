"""Two traces side by side: what one of them does not record is not taken for 0, and no work is left out."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptscope.app.__main__ import main
from gptscope.app.viewmodels.trace_diff import changes, diff_page
from gptscope.profiling.export.trace_tables import export_difference
from gptscope.profiling.trace import open_trace
from gptscope.profiling.trace.analysis import Level, Linked, diff_traces


def host(name: str, start: float, duration: float, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 9, "ts": start, "dur": duration, "args": args}


def kernel(name: str, start: float, duration: float, correlation: int) -> dict[str, Any]:
    args = {"device": 0, "stream": 7, "correlation": correlation}
    where = {"pid": 0, "tid": 7, "ts": start, "dur": duration, "args": args}
    return {"ph": "X", "cat": "kernel", "name": name, **where}


def work(start: float, kernel_us: float, number: int = 1) -> list[dict[str, Any]]:
    """One operator that launches one kernel."""
    launch = host("cudaLaunchKernel", start + 2, 2, "cuda_runtime", correlation=number)
    return [host("aten::mm", start, 10), launch, kernel("gemm", start + 8, kernel_us, number)]


@pytest.fixture
def trace(tmp_path: Path):
    def write(name: str, events: list[dict[str, Any]]) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"traceEvents": events}))
        return path

    return write


def linked(path: Path) -> Linked:
    return Linked.of(open_trace(path))


def test_a_level_that_one_trace_does_not_record_is_unknown_there(trace, tmp_path: Path, capsys):
    module = host("module: blocks.0", 0, 12, "user_annotation")
    paths = trace("plain", work(0, 30)), trace("scoped", [module, *work(0, 20)])
    diff = diff_traces(linked(paths[0]), linked(paths[1]), "module")
    assert (diff.before_ns, diff.after_ns, diff.change_ns) == (30_000, 20_000, -10_000)
    assert [(r.before_ns, r.after_ns, r.change_ns, r.status) for r in diff.rows if r.name == "blocks.*"] == [
        (None, 20_000, None, "unrecorded")
    ]
    reason = "Before: n/a, no modules recorded: record with with_stack=True or with_modules=True."
    assert diff.notes == (reason,)
    assert main(["trace", "diff", *map(str, paths), "--by", "module", "--json", str(tmp_path / "d.json")]) == 0
    text = capsys.readouterr().out
    assert ["blocks.*", "n/a", "n/a", "0.0200", "n/a"] in [line.split()[:5] for line in text.splitlines()]
    assert reason in text
    document = json.loads((tmp_path / "d.json").read_text())["diff"]
    assert document["notes"] == [reason]
    assert {row["before_ns"] for row in document["rows"]} == {None}
    with export_difference(diff, "csv", tmp_path / "d.csv").open(newline="") as file:
        assert {(row["before_ns"], row["change_ns"], row["notes"]) for row in csv.DictReader(file)} == {
            ("", "", reason)
        }
    page = diff_page(diff)
    assert page.about == reason
    assert [page.table.columns[i].text(0) for i in (2, 3, 4, 5)] == ["n/a", "0.0200", "n/a", "n/a"]
    assert not changes(page.table).chart.rows


def test_a_level_that_neither_trace_records_is_no_table_of_zeros(trace):
    one = linked(trace("plain", work(0, 30)))
    diff = diff_traces(one, one, "module")
    assert (diff.rows, diff.before_ns, diff.after_ns) == ([], 30_000, 30_000)
    assert [note.partition(":")[0] for note in diff.notes] == ["Before", "After"]
    assert "no modules recorded" in diff_page(diff).table.empty


@pytest.mark.parametrize(("level", "name"), [("operator", "no operator recorded"), ("module", "no module recorded")])
def test_work_without_an_operator_or_a_module_is_a_row(trace, level: Level, name: str):
    module = host("module: blocks.0", 0, 12, "user_annotation")
    before = linked(trace("before", [module, *work(0, 30), kernel("graph_a", 100, 7, 8), kernel("graph_b", 110, 4, 9)]))
    after = linked(trace("after", [module, *work(0, 30)]))
    diff = diff_traces(before, after, level)
    assert [(r.name, r.status, r.before_ns, r.before_calls) for r in diff.rows if r.change_ns] == [
        (name, "vanished", 11_000, 2)
    ]
    assert (diff.before_ns, diff.after_ns) == (41_000, 30_000)


def test_every_level_of_real_traces_adds_up_to_all_work(shared_traces: Path):
    before, after = (linked(shared_traces / "real" / f"tl-{name}-bert-small.json.gz") for name in ("h100", "mi300x"))
    sums = before.entries.own_ns.sum(), after.entries.own_ns.sum()
    levels: tuple[Level, ...] = ("kernel", "category", "operator")
    for level in levels:
        diff = diff_traces(before, after, level)
        steps = before.windows.count if diff.per_step else 1
        assert np.allclose((diff.before_ns, diff.after_ns), np.array(sums) / steps, rtol=1e-12)
        assert sum(row.change_ns or 0 for row in diff.rows) == pytest.approx(diff.change_ns)


def test_steps_are_unknown_where_only_the_other_trace_marks_them(trace):
    marked = linked(trace("marked", [*work(0, 30), host("ProfilerStep#1", 0, 50, "user_annotation")]))
    plain = linked(trace("plain", work(0, 30)))
    diff = diff_traces(marked, plain, "step")
    assert [(row.name, row.before_ns, row.after_ns) for row in diff.rows] == [("step 1", 50_000, None)]
    assert (diff.before_ns, diff.after_ns) == (50_000, None)
    assert diff.notes == ("After: n/a, no steps marked: call profiler.step().",)
    assert [row.name for row in diff_traces(plain, plain, "step").rows] == ["whole trace"]


def test_per_step_counts_only_work_that_the_steps_launched(trace):
    steps = [host(f"ProfilerStep#{i}", 100 * i, 50, "user_annotation") for i in range(2)]
    module = [host("module: blocks.0", 100 * i, 12, "user_annotation") for i in range(3)]
    inside = [*work(0, 60), *work(100, 20, 2)]  # the first kernel outlasts the step that launched it
    before = linked(trace("before", [*steps, *module, *inside, *work(200, 500, 3)]))
    after = linked(trace("after", [*steps, *module, *inside]))
    levels: tuple[Level, ...] = ("kernel", "category", "operator", "module")
    for level in levels:
        diff = diff_traces(before, after, level)
        assert diff.per_step
        assert (diff.before_ns, diff.after_ns) == (40_000, 40_000)
        assert [(row.before_ns, row.before_calls, row.change_ns) for row in diff.rows if row.before_ns] == [
            (40_000, 1, 0)
        ]
        assert diff.notes == ("Before: 0.5 ms of 0.58 ms of work was launched outside of steps and is left out.",)


def test_steps_around_no_work_and_ranges_are_not_divided(trace):
    step = host("ProfilerStep#0", 1000, 50, "user_annotation")
    empty, full = linked(trace("empty", [step, *work(0, 30)])), linked(trace("full", [step, *work(1000, 30)]))
    diff = diff_traces(empty, full, "kernel")
    assert (diff.per_step, diff.before_ns, diff.after_ns) == (False, 30_000, 30_000)
    part = Linked.of(full, (1_000_000, 1_060_000))
    assert not diff_traces(part, part, "kernel").per_step


def test_a_host_is_not_held_against_a_device_without_a_word(trace, capsys):
    paths = trace("host", [host("aten::mm", 0, 100)]), trace("device", work(0, 30))
    sentence = "Before is self time of operators on the host, for want of device work; after is time on the device."
    assert diff_traces(*map(linked, paths), "category").notes == (sentence,)
    assert main(["trace", "diff", *map(str, paths)]) == 0
    assert sentence in capsys.readouterr().out
    assert diff_traces(*map(linked, paths[::-1]), "operator").notes[0].startswith("After is self time")
