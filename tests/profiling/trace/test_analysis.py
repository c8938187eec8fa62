"""Analyses on hand-made traces, where every number can be worked out by hand."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gptscope.profiling.trace import Trace, TraceError, open_trace, source
from gptscope.profiling.trace.analysis import (
    Linked,
    advise,
    device_memory,
    device_use,
    diff_traces,
    gap_sums,
    graph_sums,
    health_notes,
    idle_gaps,
    kernel_sums,
    launch_calls,
    launch_delays,
    launch_sums,
    module_sums,
    operator_memory,
    operator_sums,
    roofline_points,
    step_times,
    tensor_core_use,
    tensor_cores_by_category,
)
from gptscope.profiling.trace.analysis.tables import TABLES, table_columns


def host(name: str, start: float, duration: float, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    named = {"ext": "External id", "dims": "Input Dims", "types": "Input type"}
    fields = {named.get(key, key): value for key, value in args.items()}
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 9, "ts": start, "dur": duration, "args": fields}


def launch(start: float, correlation: int, name: str = "cudaLaunchKernel", duration: float = 2) -> dict[str, Any]:
    return host(name, start, duration, "cuda_runtime", correlation=correlation)


def kernel(name: str, start: float, duration: float, correlation: int, stream: int = 7, **args: Any) -> dict[str, Any]:
    fields = {"device": 0, "stream": stream, "correlation": correlation, **args}
    category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": start,
        "dur": duration,
        "args": fields,
    }


@pytest.fixture
def linked(write_trace):
    def make(*events: dict[str, Any], **around: Any) -> Linked:
        return Linked.of(open_trace(write_trace(list(events), **around)))

    return make


def test_every_gap_has_the_cause_that_the_host_shows(linked):
    made = linked(
        launch(0, 1), kernel("a", 10, 10, 1),
        launch(5, 2), kernel("queued", 25, 5, 2),  # launched before the gap began
        host("aten::mm", 30, 20), launch(45, 3), kernel("late", 50, 10, 3),  # the host was busy until then
        host("cudaDeviceSynchronize", 52, 30, "cuda_runtime"), launch(90, 4), kernel("waited", 100, 10, 4),
        host("enumerate(DataLoader)#_Iter.__next__", 110, 80, "user_annotation"),
        launch(192, 5), kernel("b", 200, 1, 5),
        kernel("unknown", 300, 1, 99),
        launch(390, 6), kernel("after nothing", 400, 10, 6),
    )  # fmt: skip
    gaps = idle_gaps(made)
    assert list(zip(gaps.duration_ns.tolist(), gaps.cause, strict=True)) == [
        (5_000, "device scheduling"),
        (20_000, "launch-bound"),
        (40_000, "synchronisation"),
        (90_000, "data loading"),
        (99_000, "launch not recorded"),
        (99_000, "host wait"),
    ]
    (use,) = device_use(made)
    assert sum(g.total_ns for g in gap_sums(made)) == use.idle_ns == 353_000


def test_the_typical_gap_holds_half_of_the_time(linked):
    events = [kernel("k", start, 1, 0) for start in (0, 2, 4, 6, 107)]
    (gaps,) = gap_sums(linked(*events))
    assert (gaps.gaps, gaps.total_ns, gaps.median_ns, gaps.typical_ns) == (4, 103_000, 1_000, 100_000)


def test_delays_count_a_graph_once_and_its_kernels_all(linked):
    made = linked(
        host("replay", 0, 30), launch(10, 1, "cudaGraphLaunch", 5), kernel("a", 20, 3, 1), kernel("b", 25, 3, 1),
        launch(40, 2), kernel("c", 45, 4, 2),
    )  # fmt: skip
    _, delay = launch_delays(made)
    assert sorted(delay.tolist()) == [5_000, 10_000]
    (graph,) = graph_sums(made)
    assert (graph.name, graph.launches, graph.kernels, graph.device_ns) == ("cudaGraphLaunch", 1, 2, 6_000)
    assert graph.share == pytest.approx(0.6)
    assert {o.name: o.device_self_ns for o in operator_sums(made)} == {"replay": 6_000}
    of_graph, single = sorted(launch_calls(made), key=lambda call: call.name)
    assert (of_graph.name, of_graph.launches, of_graph.launched) == ("cudaGraphLaunch", 1, 2)
    assert (of_graph.median_delay_ns, of_graph.longest_delay_ns, of_graph.call_ns) == (10_000, 10_000, 5_000)
    assert (single.launched, single.p95_delay_ns, single.device_ns, single.empty_queue_share) == (1, 5_000, 4_000, 1)
    every = launch_sums(made)
    assert (every.launches, every.launched) == (2, 3)
    assert every.call_ns == of_graph.call_ns + single.call_ns


def test_operators_by_shape_and_times_of_nested_ones(linked):
    dims = {"dims": [[4, 8], [8, 2]], "types": ["float", "float"]}
    made = linked(
        host("aten::linear", 0, 100, ext=1), host("aten::mm", 10, 60, ext=2, **dims),
        launch(20, 1), kernel("gemm", 30, 40, 1),
        host("aten::mm", 200, 10, ext=3, dims=[[1, 8], [8, 2]], types=["float", "float"]),
    )  # fmt: skip
    outer, inner = sorted(operator_sums(made), key=lambda o: o.name)
    assert (outer.host_self_ns, outer.host_total_ns) == (40_000, 100_000)
    assert (outer.device_self_ns, outer.device_total_ns) == (0, 40_000)
    assert (inner.calls, inner.host_self_ns, inner.device_self_ns) == (2, 70_000, 40_000)
    assert sorted(o.shapes for o in operator_sums(made, by_shape=True)) == ["", "1×8, 8×2", "4×8, 8×2"]
    (row,) = kernel_sums(made)
    assert (row.flops, row.bytes, row.operator, row.category) == (2 * 4 * 8 * 2, 4 * (32 + 16 + 8), "aten::mm", "GEMM")
    assert row.flops_per_s == pytest.approx(128 / 40e-6)
    (point,) = roofline_points([row])
    assert point.flops_per_byte == pytest.approx(128 / 224)


def test_modules_come_from_pythons_own_records_too(linked):
    made = linked(
        host("nn.Module: GPT_0", 0, 100, "python_function"),
        host("nn.Module: Block_0", 10, 30, "python_function"), host("aten::mm", 15, 10),
        host("nn.Module: Block_1", 50, 30, "python_function"), host("aten::mm", 55, 20),
        host("aten::add", 200, 5),
    )  # fmt: skip
    rows = {r.path: (r.calls, r.host_self_ns, r.host_total_ns) for r in module_sums(made)}
    assert rows == {"GPT": (1, 0, 30_000), "GPT.Block": (2, 30_000, 30_000), "": (0, 5_000, 5_000)}
    assert [r.path for r in module_sums(made, collapse=False)][:3] == ["GPT_0", "GPT_0.Block_1", "GPT_0.Block_0"]
    assert sum(r.host_self_ns for r in module_sums(made)) == sum(o.host_self_ns for o in operator_sums(made))


def test_a_steps_parts_hide_the_host_behind_the_device_and_add_up(linked):
    made = linked(
        host("ProfilerStep#3", 0, 100, "user_annotation"), host("aten::mm", 0, 40),
        launch(30, 1), kernel("k", 35, 30, 1),
        kernel("ncclDevKernel_AllReduce", 60, 20, 2, stream=9), kernel("Memcpy DtoH", 75, 10, 3),
    )  # fmt: skip
    (step,) = step_times(made)
    assert {part: ns for part, ns in step.parts_ns.items() if ns} == {
        "compute": 30_000, "communication": 15_000, "copy": 5_000,
        "runtime": 2_000, "operators": 33_000, "other": 15_000,
    }  # fmt: skip
    assert step.device_busy_ns == 50_000


def test_a_range_looks_at_its_time_only(linked):
    made = linked(launch(0, 1), kernel("a", 10, 10, 1), launch(20, 2), kernel("b", 30, 10, 2))
    part = Linked.of(made, (15_000, 35_000))
    assert [(k.name, k.total_ns) for k in kernel_sums(part)] == [("a", 10_000), ("b", 10_000)]
    (use,) = device_use(part)
    assert (use.window_ns, use.busy_ns) == (20_000, 10_000)
    assert part.nesting is made.nesting
    (step,) = step_times(part)
    assert (step.start_ns, step.wall_ns, step.parts_ns["compute"]) == (15_000, 20_000, 10_000)
    assert sum(step.parts_ns.values()) == step.wall_ns


def test_memory_is_summed_by_device_and_by_the_operator_that_asked(linked):
    def memory(time: float, n_bytes: int, total: int) -> dict[str, Any]:
        args = {"Bytes": n_bytes, "Total Allocated": total, "Total Reserved": 4096, "Device Type": 1, "Device Id": 0}
        return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 9, "ts": time,
                "args": args}  # fmt: skip

    made = linked(
        host("aten::mm", 0, 50), host("aten::empty", 10, 5), memory(12, 1024, 1024), memory(60, 512, 1536),
        memory(70, -1024, 512),
    )  # fmt: skip
    (device,) = device_memory(made)
    assert (device.device, device.peak_bytes, device.reserved_bytes, device.kept_bytes) == ("CUDA 0", 1536, 4096, 512)
    assert (device.allocations, device.frees, device.peak_ns) == (2, 1, 60_000)
    assert [(o.operator, o.allocated_bytes) for o in operator_memory(made)] == [
        ("aten::mm", 1024), ("outside operators", 512),
    ]  # fmt: skip
    part = Linked.of(made, (50_000, 65_000))
    assert [(o.operator, o.allocated_bytes) for o in operator_memory(part)] == [("outside operators", 512)]
    assert [(d.allocations, d.frees, d.peak_bytes) for d in device_memory(part)] == [(1, 0, 1536)]


def test_tensor_cores_are_told_by_names(linked):
    made = linked(
        kernel("ampere_bf16_s16816gemm_bf16_128x64", 0, 10, 0), kernel("volta_sgemm_128x32_nt", 20, 5, 0),
        kernel("triton_mm_kernel", 30, 1, 0), kernel("add_elementwise_kernel", 40, 7, 0),
        deviceProperties=[{"id": 0, "computeMajor": 8}],
    )  # fmt: skip
    use = tensor_core_use(made)
    assert (use.used_ns, use.unused_ns) == (10_000, 5_000)
    assert use.used_share == pytest.approx(2 / 3)
    assert tensor_cores_by_category(made) == {"GEMM": use}
    assert any("do not run on tensor cores" in a.sentence for a in advise(made))


def test_advice_rests_on_its_numbers(linked):
    events: list[dict[str, Any]] = []
    for i in range(200):
        events += [
            host("aten::add", i * 50, 40),
            launch(i * 50 + 30, i + 1),
            kernel("k_elementwise", i * 50 + 33, 4, i + 1),
        ]
    made = linked(*events)
    sentences = {a.topic: a for a in advise(made)}
    assert sentences["idle"].sentence.startswith(
        "GPU 0 is idle 92 % of 9.95 ms; 100 % of that is launch-bound (199 gaps"
    )
    assert "CUDA graphs" in sentences["idle"].sentence
    assert sentences["idle"].numbers["idle_ns"] == 199 * 46_000
    assert "100 % of the 200 kernels" in sentences["small kernels"].sentence


def test_health_says_what_is_missing(linked):
    messages = [n.message for n in health_notes(linked(host("aten::mm", 0, 5), launch(1, 1)))]
    assert any("no GPU activity recorded" in m for m in messages)
    assert any("no input shapes recorded" in m for m in messages)
    assert any("no steps marked" in m for m in messages)
    long = linked(kernel("long", 0, 50_000, 0), kernel("next", 10, 5, 0))
    (note,) = [n for n in health_notes(long) if "far beyond" in n.message]
    assert "50000.000 us as recorded, 10.000 us cut" in note.message


def test_a_diff_adds_up_and_finds_what_replaced_what(write_trace, tmp_path: Path):
    def trace(product: str, time: float, extra: str) -> Linked:
        path = tmp_path / f"{product}.json"
        events = [host("aten::mm", 0, 50), launch(10, 1), kernel(product, 20, time, 1), kernel(extra, 500, 3, 77),
                  host("ProfilerStep#1", 0, 600, "user_annotation")]  # fmt: skip
        path.write_text(json.dumps({"traceEvents": events}))
        return Linked.of(open_trace(path))

    before, after = trace("sgemm", 100, "old_helper"), trace("bf16_gemm", 30, "new_helper")
    diff = diff_traces(before, after, "kernel")
    assert [(r.name, r.other_name, r.status, r.change_ns) for r in diff.rows] == [
        ("sgemm", "bf16_gemm", "replaced", -70_000), ("new_helper", "", "new", 3_000),
        ("old_helper", "", "vanished", -3_000),
    ]  # fmt: skip
    assert diff.per_step
    assert sum(r.change_ns for r in diff.rows) == diff.after_ns - diff.before_ns == -70_000
    assert diff_traces(before, before, "kernel").rows[0].change_ns == 0


def test_every_table_has_columns_of_one_length(shared_traces: Path):
    made = Linked.of(open_trace(shared_traces / "real" / "hta-a100-nccl.json.gz"))
    for name, table in TABLES.items():
        columns = table_columns(table(made))
        assert len({len(values) for values in columns.values()}) <= 1, name


def test_begin_and_end_events_become_rows_and_async_ones_tracks_of_their_own(write_trace):
    at = {"pid": 1, "tid": 2}
    trace = open_trace(
        write_trace([
            {"ph": "B", "name": "outer", "ts": 0, **at}, {"ph": "B", "name": "inner", "ts": 5, **at},
            {"ph": "E", "ts": 7, **at}, {"ph": "E", "ts": 20, **at}, {"ph": "E", "ts": 21, **at},
            {"ph": "b", "name": "request", "cat": "net", "id": "0x1", "ts": 3, **at},
            {"ph": "e", "name": "request", "cat": "net", "id": "0x1", "ts": 33, **at},
            {"ph": "B", "name": "open", "ts": 30, **at},
        ])
    )  # fmt: skip
    rows = {trace.name_of(i): (int(trace.duration_ns[i]), trace.tracks[trace.track[i]].tid) for i in range(len(trace))}
    assert rows == {"outer": (20_000, 2), "inner": (2_000, 2), "request": (30_000, "async net"), "open": (3_000, 2)}
    assert trace.unfinished.sum() == 1
    assert any("an end without a beginning" in n.message for n in trace.health)


def test_arguments_are_read_from_any_kind_of_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(source, "_CHECKPOINT_BYTES", 1 << 16)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 15)
    text = json.dumps({"traceEvents": [host(f"op{i}", i, 1, number=i) for i in range(9_000)]}).encode()
    files = {
        "plain.json": text,
        "packed.json.gz": gzip.compress(text),
        "members.gz": gzip.compress(b"\xef\xbb\xbf" + text[:100_000]) + gzip.compress(text[100_000:]),
        "marked.json": b"\xef\xbb\xbf" + text,
        "broken.json": text.replace(b'"op7"', b'"o\\p7"'),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("readme.txt", "x")
        archive.writestr("trace.json", text)
    for name in (*files, "a.zip"):
        trace = open_trace(tmp_path / name)
        assert len(trace) == 9_000
        assert [trace.args(row)["number"] for row in (0, 7, 8_345, 8_999)] == [0, 7, 8_345, 8_999]
    (tmp_path / "plain.json").unlink()
    assert gone(tmp_path / "packed.json.gz").args(3) == {}


def gone(path: Path) -> Trace:
    trace = open_trace(path)
    path.unlink()
    return trace


def test_progress_counts_bytes_and_can_stop_the_reading(tmp_path: Path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [host("op", i, 1) for i in range(30_000)]}))
    seen: list[tuple[int, int]] = []
    open_trace(path, lambda done, size: seen.append((done, size)))
    assert seen == sorted(seen)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)

    def stop(done: int, size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_trace(path, stop)


def test_a_small_file_with_events_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(source, "_COLUMN_FREE_BYTES", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    event = b'{"ph":"X","ts":1,"dur":1},'
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b'{"traceEvents":[')
        for _ in range(4):
            file.write(event * 40_000)
        file.write(b"]}")
    with pytest.raises(TraceError, match="inflates to more than"):
        open_trace(path)


def test_text_nested_beyond_measure_does_not_end_the_reading(tmp_path: Path):
    path = tmp_path / "deep.json"
    path.write_text('{"traceEvents": [{"ph":"X","name":"k","ts":1,"dur":1},' + "[" * 200_000)
    trace = open_trace(path)
    assert len(trace) == 1
    assert any(note.kind == "truncated" for note in trace.health)


def test_arguments_with_broken_text_are_mended_when_they_are_asked_for(tmp_path: Path):
    path = tmp_path / "t.json"
    event = b'{"ph":"X","name":"k","ts":1,"dur":1,"args":{"note":"a\xffb"}}'
    path.write_bytes(b'{"traceEvents": [' + event + b"]}")
    assert open_trace(path).args(0) == {"note": "a\ufffdb"}


def test_half_of_a_surrogate_pair_is_mended_and_told(tmp_path: Path):
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [{"ph":"X","name":"a\\ud800b","ts":1,"dur":1}]}')
    trace = open_trace(path)
    assert trace.names == ["a?b"]
    assert [note.kind for note in trace.health] == ["repaired"]
