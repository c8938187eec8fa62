import time

import numpy as np
from tests_app_streams import profile

from gptscope.app.viewmodels.inspect_operator import find, operator_lines
from gptscope.app.viewmodels.kernel_match import row_key
from gptscope.app.viewmodels.operator_table import kernel_of, operator_key, operator_of, operator_table
from gptscope.app.viewmodels.tables import filtered_rows, sorted_rows
from gptscope.profiling.records import KernelRow, OperatorRow, Profile


def device_profile() -> Profile:
    kernels = tuple(
        KernelRow(name=name, category="GEMM", calls=2, self_time_us=us, total_time_us=us, share=0.5, module=module)
        for name, us, module in (("sgemm", 60.0, "lm_head"), ("sgemm", 90.0, "mlp.down"), ("splitK", 10.0, "lm_head"))
    )
    operators = (
        OperatorRow(
            name="aten::mm", calls=4, self_time_us=8.0, total_time_us=8.0, input_shapes="1×8, 8×8", category="GEMM",
            module="lm_head", device_self_time_us=70.0, device_total_time_us=70.0, kernels=("sgemm", "splitK"),
        ),
        OperatorRow(
            name="aten::linear", calls=4, self_time_us=2.0, total_time_us=10.0, module="lm_head",
            device_self_time_us=0.0, device_total_time_us=70.0,
        ),
    )  # fmt: skip
    return Profile(
        run_id="r", steps=2, overhead=1.0, wall_us=1e3, busy_us=160.0, kernels=kernels, device="cuda",
        operators=operators,
    )  # fmt: skip


def texts(table: object, title: str) -> list[str]:
    column = next(c for c in table.columns if c.title == title)  # type: ignore[attr-defined]
    return [column.text(i) for i in range(table.rows)]  # type: ignore[attr-defined]


def test_self_and_total_are_per_step_and_sorted_by_value() -> None:
    table = operator_table(profile("a"), None, "decode")
    row = table.keys.index("aten::linear|")
    assert texts(table, "Total ms")[row] == "13.7"
    assert texts(table, "Self ms")[row] == "0.0600"
    assert texts(table, "Calls")[row] == "121"
    assert texts(table, "Module")[row] == "blocks.*.mlp.gate_up and 4 more"
    assert not [c for c in table.columns if c.title.startswith("GPU")]
    assert table.columns[table.default_sort].title == "Self ms"
    assert table.footer[0] == "11 operators, 12 profiled tokens"


def test_a_device_has_the_time_of_the_kernels_too() -> None:
    table = operator_table(device_profile(), None, "decode")
    assert texts(table, "GPU self ms") == ["0.0350", "0"]
    assert texts(table, "GPU total ms") == ["0.0350", "0.0350"]
    lines = dict(operator_lines(device_profile().operators[0], device_profile(), "decode"))
    assert lines["Kernels"] == "sgemm, splitK"
    assert lines["GPU time per token, own kernels"] == "35.0 µs"


def test_the_baselines_time_stands_beside_the_same_operator_only() -> None:
    table = operator_table(profile("a"), profile("b", 2.0), "decode")
    ours, theirs = texts(table, "Self ms"), texts(table, "Base self ms")
    assert (ours[0], theirs[0]) == ("5.31", "10.6")
    assert texts(operator_table(device_profile(), profile("b"), "decode"), "Base self ms") == ["n/a", "0.0600"]


def test_kernels_and_operators_find_each_other() -> None:
    cpu, cuda = profile("a"), device_profile()
    assert kernel_of(cuda, operator_key(cuda.operators[0])) == row_key(cuda.kernels[0]), "its own module before another"
    assert kernel_of(cuda, operator_key(cuda.operators[1])) == "", "it launches nothing itself"
    assert operator_of(cuda, cuda.kernels[2]) == operator_key(cuda.operators[0])
    old = Profile(run_id="o", steps=2, overhead=1, wall_us=1, busy_us=1, kernels=cpu.kernels, device="cpu")
    for kernel in old.kernels:
        assert kernel_of(old, operator_of(old, kernel)) == row_key(kernel), "an old profile's kernels are its operators"
    assert find(old, operator_of(old, old.kernels[0])) is not None


def test_an_old_device_profile_says_why_there_are_no_operators() -> None:
    full = device_profile()
    old = Profile(run_id="o", steps=2, overhead=1, wall_us=1, busy_us=1, kernels=full.kernels, device="cuda")
    table = operator_table(old, None, "decode")
    assert table.rows == 0
    assert "before operators" in table.empty
    assert operator_table(None, None, "decode").rows == 0


def test_a_hundred_thousand_operators_are_made_sorted_and_filtered_quickly() -> None:
    rows = tuple(
        OperatorRow(name=f"aten::op{i % 997}", calls=i, self_time_us=float(i * 7919 % 100_003), total_time_us=1e5,
                    input_shapes=f"{i}×8")
        for i in range(100_000)
    )  # fmt: skip
    big = Profile(run_id="b", steps=1, overhead=1, wall_us=1, busy_us=1, kernels=(), device="cpu", operators=rows)
    begin = time.perf_counter()
    table = operator_table(big, big, "decode")
    made_s, begin = time.perf_counter() - begin, time.perf_counter()
    order = sorted_rows(table, 3, np.arange(table.rows), descending=True)
    found = filtered_rows(table, "op12 8")
    assert time.perf_counter() - begin < 1.0  # generous: the machine may be busy; idle it is some 60 ms
    assert made_s < 5.0
    assert float(table.columns[3].values[order[0]]) == max(row.self_time_us for row in rows) / 1e3  # type: ignore[arg-type]
    assert found.size > 100
    assert find(big, table.keys[99_999]) is rows[99_999]
