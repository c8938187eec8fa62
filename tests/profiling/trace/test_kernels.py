"""The kernel table against torch's own sums, hand-made GPU traces, and real ones."""

from collections import defaultdict
from pathlib import Path

import pytest

from gptscope.profiling.trace import kernel_table, open_trace, profiled_time, step_windows
from gptscope.profiling.trace.intervals import union_ns
from gptscope.profiling.trace.kernels import NS_PER_US


def by_name(rows, attribute):
    sums = defaultdict(float)
    for row in rows:
        sums[row.name] += getattr(row, attribute)
    return sums


@pytest.mark.parametrize("which", ["prefill_trace", "train_trace"])
def test_self_times_and_calls_equal_those_of_torch(which, request):
    recorded = request.getfixturevalue(which)
    rows = kernel_table(open_trace(recorded.path))
    self_us, calls = by_name(rows, "self_time_us"), by_name(rows, "calls")
    compared = 0
    for average in recorded.averages:
        name = average.key
        if name.startswith(("module: ", "ProfilerStep", "Optimizer.")):
            assert name not in self_us
            continue
        if average.self_cpu_time_total < 0.5:
            continue  # calls without self time are no work
        # torch rounds starts and ends to nanoseconds as we do, but sums in doubles of microseconds
        assert self_us[name] == pytest.approx(average.self_cpu_time_total, rel=1e-3, abs=0.05 * average.count), name
        assert 0.9 * average.count <= calls[name] <= average.count, name
        compared += 1
    assert compared > 15


def test_the_table_adds_up_to_all_self_time_inside_the_steps(train_trace):
    trace = open_trace(train_trace.path)
    rows, time = kernel_table(trace), profiled_time(trace)
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    # One thread: operators do not overlap, so their self times fill exactly the busy time.
    assert sum(round(row.self_time_us * NS_PER_US) for row in rows) == time.busy_ns
    assert time.busy_ns < time.wall_ns
    assert time.steps == 2
    assert [r.self_time_us for r in rows] == sorted((r.self_time_us for r in rows), reverse=True)


def test_layers_share_a_row_and_backward_work_finds_its_module(train_trace):
    rows = kernel_table(open_trace(train_trace.path))
    products = defaultdict(int)
    for row in rows:
        if row.name == "aten::mm":
            products[row.module] += row.calls
    # 2 steps x 2 layers x (1 forward + 2 backward products)
    for module in ("attn.qkv.q", "attn.qkv.k", "attn.qkv.v", "attn.out", "mlp.gate", "mlp.up", "mlp.down"):
        assert products[f"blocks.*.{module}"] == 12, module
    assert products["lm_head"] == 6
    labels = {row.label for row in rows}
    assert "mlp.down, fp32 GEMM" in labels
    each = kernel_table(open_trace(train_trace.path), collapse=False)
    assert {row.module for row in each} >= {"blocks.0.mlp.down", "blocks.1.mlp.down"}


def test_categories_follow_owner_and_module(train_trace):
    rows = kernel_table(open_trace(train_trace.path))
    categories = defaultdict(set)
    for row in rows:
        categories[row.module, row.name].add(row.category)
    assert categories["blocks.*.mlp.down", "aten::mm"] == {"GEMM"}
    assert categories["blocks.*.attn.core", "aten::bmm"] == {"attention"}
    assert categories["blocks.*.attn_norm", "aten::pow"] == {"norm"}
    assert categories["blocks.*.mlp", "aten::mul"] == {"elementwise"}
    assert categories["", "aten::_fused_adamw_"] == {"optimizer"}
    assert categories["embed", "aten::embedding"] <= {"copy"}


def test_modelled_cost_is_counted_once_per_operator(train_trace):
    rows = kernel_table(open_trace(train_trace.path))
    flops = defaultdict(int)
    for row in rows:
        flops[row.module] += row.flops or 0
    # tiny: D 64, F 192, 2 x 16 tokens; forward and two backward products; 2 layers, 2 steps
    assert flops["blocks.*.mlp.down"] == 2 * 2 * 3 * 2 * 32 * 192 * 64
    adamw = next(row for row in rows if row.name == "aten::_fused_adamw_")
    parameters = 512 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 192 + 2 * 64) + 64
    assert adamw.bytes == 2 * 7 * 4 * parameters  # 2 steps; read p, g, m, v; write p, m, v
    down = next(row for row in rows if row.label == "mlp.down, fp32 GEMM" and row.input_shapes == "32×192, 192×64")
    assert down.bytes == 4 * 4 * (32 * 192 + 192 * 64 + 32 * 64)
    assert down.dtypes == ("float",)


def event(name, cat, ts, dur, *, tid=1, **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def mm_args(number, size):
    return {"External id": number, "Input Dims": [[size, size], [size, size]], "Input type": ["float", "float"]}


def gpu_events():
    return [
        event("ProfilerStep#1", "user_annotation", 0, 100),
        event("module: blocks.0.mlp.down", "user_annotation", 5, 50),
        event("aten::linear", "cpu_op", 6, 40, **{"External id": 1}),
        event("aten::mm", "cpu_op", 10, 30, **mm_args(2, 8)),
        event("cudaLaunchKernel", "cuda_runtime", 12, 3, correlation=7),
        event("cudaLaunchKernel", "cuda_runtime", 20, 3, correlation=8),
        event("sgemm_main", "kernel", 30, 50, tid=7, device=0, stream=7, correlation=7),
        event("splitKreduce_kernel", "kernel", 80, 10, tid=7, device=0, stream=7, correlation=8),
        event("late_kernel", "kernel", 95, 5, tid=8, device=0, stream=8, correlation=99),
        event("outside", "kernel", 200, 5, tid=7, device=0, stream=7, correlation=100),
    ]


def test_kernels_find_their_operator_module_and_cost(write_trace):
    trace = open_trace(write_trace(gpu_events()))
    rows = {row.name: row for row in kernel_table(trace)}
    assert set(rows) == {"sgemm_main", "splitKreduce_kernel", "late_kernel"}
    main, helper = rows["sgemm_main"], rows["splitKreduce_kernel"]
    assert main.module == helper.module == "blocks.*.mlp.down"
    assert main.category == helper.category == "GEMM"  # the owner decides, not the name "reduce"
    assert main.flops == 2 * 8 * 8 * 8
    assert main.bytes == 3 * 8 * 8 * 4
    assert helper.flops is None  # one operator's work is counted once, at its longest kernel
    assert rows["late_kernel"].module == ""
    time = profiled_time(trace)
    assert (time.device, time.wall_ns) == ("cuda", 100_000)
    assert time.busy_ns == 65_000  # 30..90 and 95..100


def test_busy_counts_overlapping_streams_once(write_trace):
    events = gpu_events()
    events[8]["ts"], events[8]["dur"] = 40, 30  # runs beside sgemm_main
    time = profiled_time(open_trace(write_trace(events)))
    assert time.busy_ns == 60_000  # 30..90


def test_a_kernel_belongs_to_the_step_that_launched_it(write_trace):
    events = [
        event("ProfilerStep#1", "user_annotation", 0, 50),
        event("ProfilerStep#2", "user_annotation", 50, 50),
        event("aten::mm", "cpu_op", 90, 8, **{"External id": 1}),
        event("cudaLaunchKernel", "cuda_runtime", 92, 3, correlation=7, **{"External id": 1}),
        event("gemm", "kernel", 120, 10, tid=7, device=0, stream=7, correlation=7, **{"External id": 1}),
    ]
    rows = kernel_table(open_trace(write_trace(events)))
    assert [row.name for row in rows] == ["gemm"]  # it ran after the last step had ended on the CPU


def test_shapes_that_change_from_step_to_step_share_a_row(write_trace):
    events = []
    for step in range(3):
        events.append(event(f"ProfilerStep#{step}", "user_annotation", step * 100, 90))
        events.append(event("aten::mm", "cpu_op", step * 100 + 1, 10, **mm_args(1, 8)))
        events.append(event("aten::mm", "cpu_op", step * 100 + 20, 10, **mm_args(2, 16 + step)))
    rows = kernel_table(open_trace(write_trace(events)))
    assert sorted(row.input_shapes for row in rows) == ["16×16, 16×16 and 2 more", "8×8, 8×8"]
    assert {row.calls for row in rows} == {3}


def test_a_single_row_product_is_named_gemv(write_trace):
    args = {"Input Dims": [[1, 64], [64, 32]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
    row = kernel_table(open_trace(write_trace([event("aten::mm", "cpu_op", 1, 10, **args)])))[0]
    assert row.label == "bf16 GEMV"


def test_a_concatenation_takes_its_type_from_who_uses_the_result(write_trace):
    cat = {"Input Dims": [[[1, 3, 7, 4], [1, 3, 1, 4]], []], "Input type": ["TensorList", "Scalar"]}
    cat["Concrete Inputs"] = ["", "2"]
    use = {"Input Dims": [[1, 3, 8, 4]], "Input type": ["c10::BFloat16"]}
    used = [event("aten::cat", "cpu_op", 1, 10, **cat), event("aten::neg", "cpu_op", 20, 5, **use)]
    unused = used[:1]
    rows = {row.name: row for row in kernel_table(open_trace(write_trace(used)))}
    assert rows["aten::cat"].bytes == 2 * 3 * 8 * 4 * 2  # read and written, two bytes each
    assert kernel_table(open_trace(write_trace(unused)))[0].bytes is None  # unknown, not guessed


def test_self_time_is_never_negative_even_when_a_child_outlasts_its_parent(write_trace):
    events = [event("outer", "cpu_op", 0, 10), event("inner", "cpu_op", 5, 50), event("next", "cpu_op", 60, 1)]
    rows = {row.name: row.self_time_us for row in kernel_table(open_trace(write_trace(events)))}
    assert rows["outer"] == pytest.approx(5.0)
    assert min(rows.values()) >= 0


def test_generated_code_is_work_on_a_cpu(write_trace):
    call = "## Call CompiledFxGraph fy4y2qzlul ##"
    events = [
        event("Torch-Compiled Region: 0/0", "cpu_op", 0, 100),
        event(call, "user_annotation", 20, 70),
        event("aten::mm", "cpu_op", 30, 40, **mm_args(1, 8)),
    ]
    rows = {row.name: row for row in kernel_table(open_trace(write_trace(events)))}
    assert rows[call].self_time_us == pytest.approx(30.0)
    assert (rows[call].label, rows[call].category) == ("generated code fy4y2qzl", "elementwise")
    assert rows["Torch-Compiled Region: 0/0"].self_time_us == pytest.approx(30.0)
    assert rows["aten::mm"].category == "GEMM"


def test_device_copies_have_the_bytes_that_were_recorded(write_trace):
    events = [
        event("Memcpy HtoD", "gpu_memcpy", 10, 2, tid=7, device=0, stream=7, bytes=4_000_000),
        event("Memcpy HtoD", "gpu_memcpy", 20, 2, tid=7, device=0, stream=7, bytes=2_000_000),
        event("some_kernel", "kernel", 30, 2, tid=7, device=0, stream=7),
    ]
    rows = {row.name: row for row in kernel_table(open_trace(write_trace(events)))}
    assert rows["Memcpy HtoD"].bytes == 6_000_000
    assert rows["Memcpy HtoD"].category == "copy"
    assert rows["some_kernel"].bytes is None


def test_an_empty_trace_has_an_empty_table(write_trace):
    trace = open_trace(write_trace([]))
    assert kernel_table(trace) == []
    assert profiled_time(trace).wall_ns == 0
    assert step_windows(trace).count == 0


@pytest.mark.parametrize(
    "name",
    ["tl-h100-bert-small.json.gz", "tl-mi300x-qwen.json.gz", "hta-a100-alexnet.json.gz", "hta-a100-nccl.json.gz"],
)
def test_tables_of_real_gpu_traces_keep_every_nanosecond_of_work(name: str, shared_traces: Path):
    trace = open_trace(shared_traces / "real" / name)
    whole = step_windows(read_kineto_without_steps(trace))
    rows = kernel_table(trace, whole)
    work = trace.gpu_work()
    assert sum(row.calls for row in rows) == int(work.sum())
    total = sum(round(row.self_time_us * NS_PER_US) for row in rows)
    assert total == int(trace.duration_ns[work].sum())
    busy = union_ns(trace.start_ns[work], trace.end_ns[work])
    assert total >= busy
    assert {row.category for row in rows} - {"other"}


def read_kineto_without_steps(trace):
    """The same trace with its step marks renamed, so that its only window is all of it."""
    import dataclasses

    names = [n.replace("ProfilerStep#", "step ") for n in trace.names]
    return dataclasses.replace(trace, names=names)


def test_h100_products_run_at_believable_rates(shared_traces: Path):
    rows = kernel_table(open_trace(shared_traces / "real" / "tl-h100-qwen.json.gz"))
    products = [r for r in rows if r.category == "GEMM" and r.flops and r.self_time_us > 500]
    assert products
    for row in products:
        assert 300 < row.flops / row.self_time_us / 1e6 < 990, row.label  # TFLOP/s; the dense BF16 peak is 989
