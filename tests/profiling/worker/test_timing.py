"""Stopwatches give one reading per step, on the CPU and (with stand-ins for its events) on a GPU."""

import time

import pytest
import torch

from gptscope.profiling.worker import timing
from gptscope.profiling.worker.timing import CpuStopwatch, CudaStopwatch


def test_laps_follow_each_other_without_gaps():
    watch = CpuStopwatch()
    watch.start()
    for _ in range(3):
        time.sleep(0.002)
        watch.lap()
    laps = watch.take()
    assert len(laps.duration_ns) == 3
    assert all(2e6 <= duration < 1e9 for duration in laps.duration_ns)
    ends = [start + duration for start, duration in zip(laps.start_ns, laps.duration_ns, strict=True)]
    assert ends[:-1] == laps.start_ns[1:]
    assert watch.take().duration_ns == []


def test_a_pause_between_take_and_start_belongs_to_no_step():
    watch = CpuStopwatch()
    watch.start()
    watch.lap()
    watch.take()
    time.sleep(0.02)
    watch.start()
    watch.lap()
    assert watch.take().duration_ns[0] < 15e6


def test_starting_again_keeps_the_laps_before():
    watch = CpuStopwatch()
    for _ in range(4):
        watch.start()
        watch.lap()
    assert len(watch.take().duration_ns) == 4


def test_a_report_is_due_after_a_tenth_of_a_second(monkeypatch: pytest.MonkeyPatch):
    now = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])
    watch = CpuStopwatch()
    watch.start()
    for moment, due in ((50_000_000, False), (99_999_999, False), (100_000_000, True)):
        now[0] = moment
        watch.lap()
        assert watch.due() is due
    watch.take()
    watch.start()
    now[0] += 60_000_000
    watch.lap()
    assert not watch.due()


class FakeEvent:
    """A CUDA event of a device whose clock the test moves."""

    clock_ms = 0.0

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing

    def record(self, _stream: object) -> None:
        self.at_ms = FakeEvent.clock_ms

    def elapsed_time(self, later: "FakeEvent") -> float:
        return later.at_ms - self.at_ms


def test_gpu_steps_are_timed_by_events_and_placed_on_the_hosts_clock(monkeypatch: pytest.MonkeyPatch):
    waits = []
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: device)
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: 1_000)
    watch = CudaStopwatch(torch.device("cuda", 0))
    watch.start()
    assert len(waits) == 1, "the device must be idle when the host's clock is read"
    for step_ms in (1.5, 2.0):
        FakeEvent.clock_ms += step_ms
        watch.lap()
    assert len(waits) == 1, "the host does not wait between steps"
    laps = watch.take()
    assert laps.duration_ns == [1_500_000, 2_000_000]
    assert laps.start_ns == [1_000, 1_501_000]
    assert len(waits) == 2


def test_the_stopwatch_suits_the_device():
    assert isinstance(timing.stopwatch_for(torch.device("cpu")), CpuStopwatch)
    assert isinstance(timing.stopwatch_for(torch.device("cuda", 0)), CudaStopwatch)
