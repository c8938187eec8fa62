"""Files that several processes wrote: ids of launches, operators and sequences mean something inside one only."""

from collections.abc import Callable
from typing import Any

import pytest

from gptscope.profiling.trace import open_trace
from gptscope.profiling.trace.analysis import (
    Linked,
    device_memory,
    device_use,
    health_notes,
    launch_delays,
    launch_sums,
    module_sums,
    operator_sums,
    step_times,
)

Event = dict[str, Any]


def rank(
    number: int, *, device_pid: int, device: int, kernels: int = 3, shift: float = 0.0, first_id: int = 1, work: int = 1
) -> list[Event]:
    """One rank's events: `kernels` operators, each with a launch of `work` kernels; ids count from `first_id`."""
    host = {"ph": "X", "pid": 1000 + number, "tid": 1}
    gpu = {"ph": "X", "pid": device_pid, "tid": 7, "cat": "kernel"}
    events: list[Event] = []
    for i in range(kernels):
        at, ident = shift + i * 100, first_id + i
        events += [
            {**host, "cat": "cpu_op", "name": f"aten::op_of_rank{number}", "ts": at, "dur": 20,
             "args": {"External id": ident}},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 5, "dur": 5,
             "args": {"External id": ident, "correlation": ident}},
        ]  # fmt: skip
        events += [
            {**gpu, "name": f"kernel_of_rank{number}", "ts": at + 30 + 10 * k, "dur": 10 + number,
             "args": {"External id": ident, "correlation": ident, "device": device, "stream": 7}}
            for k in range(work)
        ]  # fmt: skip
    return events


@pytest.fixture
def linked(write_trace: Callable[..., Any]) -> Callable[[list[Event]], Linked]:
    return lambda events: Linked.of(open_trace(write_trace(events)))


def owners(made: Linked) -> dict[str, set[str]]:
    """For every kernel the operators that its calls belong to."""
    found: dict[str, set[str]] = {}
    for row, owner in zip(made.work.tolist(), made.owner.tolist(), strict=True):
        found.setdefault(made.trace.name_of(row), set()).add(made.trace.name_of(owner) if owner >= 0 else "none")
    return found


OWN = {"kernel_of_rank0": {"aten::op_of_rank0"}, "kernel_of_rank1": {"aten::op_of_rank1"}}


@pytest.mark.parametrize(
    "places",
    [((0, 0), (1, 1)), ((0, 0), (100000, 0)), ((0, 0), (0, 0))],
    ids=["each on its device", "process ids moved apart", "nothing tells the devices apart"],
)
@pytest.mark.parametrize("by_time", [False, True], ids=["one after the other", "sorted by time"])
def test_two_ranks_with_equal_ids_keep_their_own_kernels(places, by_time: bool, linked):
    (pid0, device0), (pid1, device1) = places
    events = rank(0, device_pid=pid0, device=device0) + rank(1, device_pid=pid1, device=device1, shift=2)
    if by_time:
        events.sort(key=lambda e: e["ts"])
    made = linked(events)
    assert owners(made) == OWN
    assert {o.name: (o.calls, o.device_self_ns) for o in operator_sums(made)} == {
        "aten::op_of_rank0": (3, 30_000),
        "aten::op_of_rank1": (3, 33_000),
    }
    _, delay = launch_delays(made)
    assert delay.tolist() == [25_000] * 6


def test_ids_that_only_one_process_uses_tell_whose_a_device_is(linked):
    # rank 1 recorded from id 2 on: the shared ids alone would pair wrongly in the order of the file
    events = rank(1, device_pid=1, device=1, first_id=2, kernels=6) + rank(0, device_pid=0, device=0, kernels=3)
    made = linked(events)
    assert owners(made) == OWN


def test_graphs_of_two_ranks_on_one_number_are_shared_out_in_the_files_order(linked):
    made = linked(rank(0, device_pid=0, device=0, work=4) + rank(1, device_pid=0, device=0, work=4))
    assert owners(made) == OWN


def test_a_kernel_whose_launch_was_not_recorded_does_not_take_another_ranks(linked):
    events = rank(0, device_pid=0, device=0, kernels=5) + rank(1, device_pid=1, device=1, kernels=5)
    lost = [e for e in events if not (e["pid"] == 1001 and e["args"]["External id"] == 5)]
    made = linked(lost)
    assert launch_sums(made).launched_before == 1
    assert owners(made) == {"kernel_of_rank0": {"aten::op_of_rank0"}, "kernel_of_rank1": {"aten::op_of_rank1", "none"}}


def test_devices_of_two_ranks_with_one_number_are_two_devices(linked):
    made = linked(rank(0, device_pid=0, device=0) + rank(1, device_pid=100000, device=0))
    assert [(use.device, use.kernels, use.busy_ns) for use in device_use(made)] == [(0, 3, 30_000), (100000, 3, 33_000)]


def test_one_device_keeps_the_number_that_its_file_gives_it(linked):
    made = linked(rank(0, device_pid=5, device=2))
    assert [use.device for use in device_use(made)] == [2]


def test_backward_operators_get_the_module_of_their_own_process(linked):
    def forward_and_backward(pid: int, module: str, start: float) -> list[Event]:
        host = {"ph": "X", "pid": pid}
        return [
            {**host, "tid": 1, "cat": "user_annotation", "name": f"module: {module}", "ts": start, "dur": 20},
            {**host, "tid": 1, "cat": "cpu_op", "name": "aten::mm", "ts": start + 5, "dur": 5,
             "args": {"Sequence number": 7, "Fwd thread id": 0}},
            {**host, "tid": 2, "cat": "cpu_op", "name": "MmBackward0", "ts": start + 50, "dur": 10,
             "args": {"Sequence number": 7, "Fwd thread id": 1}},
        ]  # fmt: skip

    made = linked(forward_and_backward(1000, "first", 0) + forward_and_backward(1001, "second", 200))
    assert {m.path: m.host_self_ns for m in module_sums(made)} == {"first": 15_000, "second": 15_000}


def test_steps_of_one_process_count_and_the_others_are_told(linked):
    def steps(pid: int, shift: float) -> list[Event]:
        mark = {"ph": "X", "cat": "user_annotation", "pid": pid, "tid": 1, "dur": 90}
        return [{**mark, "name": f"ProfilerStep#{i}", "ts": shift + 100 * i} for i in range(3)]

    made = linked(steps(1000, 0) + steps(1001, 1) + rank(0, device_pid=0, device=0))
    assert [(s.name, s.wall_ns) for s in step_times(made)] == [(f"ProfilerStep#{i}", 90_000) for i in range(3)]
    (note,) = (n for n in health_notes(made) if "other processes" in n.message)
    assert note.count == 3


def test_allocators_of_two_processes_are_told_apart(linked):
    def memory(pid: int, size: int, total: int) -> Event:
        args = {"Bytes": size, "Total Allocated": total, "Device Type": 0, "Device Id": -1}
        return {"ph": "i", "s": "t", "name": "[memory]", "pid": pid, "tid": 1, "ts": 1, "args": args}

    made = linked([memory(1, 100, 100), memory(2, 30, 30), *rank(0, device_pid=0, device=0)])
    assert {m.device: m.peak_bytes for m in device_memory(made)} == {"CPU of process 1": 100, "CPU of process 2": 30}
    alone = linked([memory(1, 100, 100)])
    assert [m.device for m in device_memory(alone)] == ["CPU"]
