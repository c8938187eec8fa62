"""The operator table against torch's own sums, and hand-made GPU traces."""

from collections import defaultdict

import pytest

from gptscope.profiling.trace import open_trace, operator_table, profiled_time
from gptscope.profiling.trace.analysis import Linked, operator_sums


def event(name, cat, ts, dur, *, tid=1, **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


@pytest.mark.parametrize("which", ["prefill_trace", "train_trace"])
def test_self_and_total_times_equal_those_of_torch(which, request):
    recorded = request.getfixturevalue(which)
    self_us, total_us = defaultdict(float), defaultdict(float)
    for row in operator_table(open_trace(recorded.path)):
        self_us[row.name] += row.self_time_us
        total_us[row.name] += row.total_time_us
    compared = 0
    for average in recorded.averages:
        if average.key.startswith(("module: ", "ProfilerStep", "Optimizer.")):
            assert average.key not in self_us
            continue
        slack = 0.05 * average.count
        assert self_us[average.key] == pytest.approx(average.self_cpu_time_total, rel=1e-3, abs=slack), average.key
        # torch counts a call within a call of the same operator (an overload) twice in its total
        assert total_us[average.key] <= average.cpu_time_total * 1.01 + slack, average.key
        if average.key in {"aten::linear", "aten::mm", "aten::mul", "aten::transpose", "aten::embedding"}:
            assert total_us[average.key] == pytest.approx(average.cpu_time_total, rel=1e-2, abs=slack), average.key
        compared += 1
    assert compared > 15


def test_operators_that_only_call_others_have_a_total_time(prefill_trace):
    rows = operator_table(open_trace(prefill_trace.path))
    outer = next(row for row in rows if row.name == "aten::linear")
    assert outer.total_time_us > 2 * outer.self_time_us
    assert outer.input_shapes
    assert [r.self_time_us for r in rows] == sorted((r.self_time_us for r in rows), reverse=True)
    assert all(row.device_self_time_us is None and row.kernels == () for row in rows)


def test_self_times_fill_the_busy_time_of_one_thread(train_trace):
    trace = open_trace(train_trace.path)
    assert sum(round(r.self_time_us * 1e3) for r in operator_table(trace)) == profiled_time(trace).busy_ns


def test_operators_are_told_apart_by_shapes_and_name_their_module(prefill_trace):
    rows = [row for row in operator_table(open_trace(prefill_trace.path)) if row.name == "aten::mm"]
    assert len({row.input_shapes for row in rows}) == len(rows) > 3
    down = next(row for row in rows if row.module == "blocks.*.mlp.down")
    assert (down.calls, down.modules, down.category) == (3 * 2, 1, "GEMM")


def test_device_time_goes_to_the_launching_operator_and_to_all_around_it(write_trace):
    shapes = {"Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"]}
    trace = open_trace(
        write_trace(
            [
                event("ProfilerStep#1", "user_annotation", 0, 100),
                event("aten::linear", "cpu_op", 6, 40, **{"External id": 1}),
                event("aten::mm", "cpu_op", 10, 30, **{"External id": 2}, **shapes),
                event("cudaLaunchKernel", "cuda_runtime", 12, 3, correlation=7),
                event("cudaLaunchKernel", "cuda_runtime", 20, 3, correlation=8),
                event("splitKreduce_kernel", "kernel", 80, 10, tid=7, device=0, stream=7, correlation=8),
                event("sgemm_main", "kernel", 30, 50, tid=7, device=0, stream=7, correlation=7),
            ]
        )
    )
    rows = {row.name: row for row in operator_table(trace)}
    assert (rows["aten::mm"].device_self_time_us, rows["aten::mm"].device_total_time_us) == (60.0, 60.0)
    assert rows["aten::mm"].kernels == ("sgemm_main", "splitKreduce_kernel")
    assert rows["aten::mm"].input_shapes == "8×8, 8×8"
    assert (rows["aten::linear"].device_self_time_us, rows["aten::linear"].device_total_time_us) == (0.0, 60.0)
    assert (rows["aten::linear"].self_time_us, rows["aten::linear"].total_time_us) == (10.0, 40.0)


def test_a_call_within_a_call_of_the_same_operator_is_counted_once_in_the_total(write_trace):
    trace = open_trace(
        write_trace(
            [
                event("ProfilerStep#0", "user_annotation", 0, 100),
                event("aten::to", "cpu_op", 0, 50),
                event("aten::copy_", "cpu_op", 5, 5),
                event("aten::to", "cpu_op", 20, 10),
            ]
        )
    )
    row = next(row for row in operator_table(trace) if row.name == "aten::to")
    assert (row.calls, row.self_time_us, row.total_time_us) == (2, 45.0, 50.0)


def test_kernels_of_an_overload_count_for_the_call_that_it_was_folded_into(write_trace):
    path = write_trace(
        [
            event("aten::sum", "cpu_op", 0, 50, **{"External id": 1}),
            event("aten::sum", "cpu_op", 5, 40, **{"External id": 2}),
            event("cudaLaunchKernel", "cuda_runtime", 10, 3, correlation=7, **{"External id": 2}),
            event("reduce_kernel", "kernel", 80, 10, tid=7, device=0, stream=7, correlation=7),
        ]
    )
    trace = open_trace(path)
    (row,) = operator_table(trace)
    assert (row.calls, row.device_self_time_us, row.device_total_time_us) == (1, 10.0, 10.0)
    (sums,) = operator_sums(Linked.of(trace))
    assert (sums.calls, sums.device_self_ns, sums.device_total_ns) == (1, 10_000, 10_000)
