"""A slice measured on a busy machine is told in one sentence, a quiet one is not."""

import subprocess
import sys
import time

import pytest

from gptscope.profiling.telemetry import disturbance, sampler
from gptscope.profiling.telemetry.cpu import CpuLoad
from gptscope.profiling.telemetry.disturbance import busiest, judge
from gptscope.profiling.telemetry.sampler import Sampler, Watched


def load(seconds: float = 1.0, worker: float = 2.0, other: float = 0.0, own: float = 0.0, steal: float | None = 0.0):
    return CpuLoad(seconds=seconds, worker_s=worker, own_s=own, other_s=other, steal_s=steal)


def test_a_quiet_machine_disturbs_nothing():
    assert judge(load(other=0.1, own=0.2, steal=0.01), processors=2) is None


def test_another_process_is_told_with_its_name():
    sentence = judge(load(other=0.38), processors=2, culprits=("cc1plus", "make"))
    assert sentence == "other processes used 38 % of a core (cc1plus, make)"


def test_stolen_time_counts_as_a_share_of_all_processors():
    assert judge(load(seconds=2.0, steal=0.15), processors=2) is None
    assert (
        judge(load(seconds=2.0, steal=0.4), processors=2) == "other virtual machines took 10 % of the processors' time"
    )
    assert judge(load(steal=None), processors=2) is None


def test_our_own_window_may_use_half_a_core():
    assert judge(load(own=0.5), processors=2) is None
    assert "own window" in judge(load(own=0.7), processors=2)


def test_a_power_limit_is_normal_but_heat_is_not():
    assert judge(load(), processors=2, gpu_reasons=("power limit", "sync boost")) is None
    sentence = judge(load(), processors=2, gpu_reasons=("power brake", "hardware thermal slowdown"))
    assert sentence == "the GPU's clocks were lowered (hardware thermal slowdown, power brake)"
    assert "because of heat" in judge(load(), processors=2, throttled=True)


def test_a_slice_shorter_than_the_counters_ticks_is_not_blamed_for_rounding():
    assert judge(load(seconds=0.02, worker=0.02, other=0.03), processors=2) is None
    assert judge(load(seconds=0.1, worker=0.1, other=0.1), processors=2) is not None


def test_many_busy_cores_do_not_make_rounding_look_like_others():
    assert judge(load(worker=32.0, other=0.6), processors=64) is None
    assert judge(load(worker=32.0, other=1.0), processors=64) is not None


def test_several_reasons_are_all_told():
    sentence = judge(load(other=0.5, steal=0.5), processors=2)
    assert sentence == "other processes used 50 % of a core; other virtual machines took 25 % of the processors' time"


def test_the_busiest_processes_are_named_once_each_busiest_first():
    before = {1: ("make", 1.0), 2: ("cc1plus", 5.0), 3: ("idle", 9.0), 4: ("cc1plus", 1.0)}
    after = {1: ("make", 1.2), 2: ("cc1plus", 5.3), 3: ("idle", 9.01), 4: ("cc1plus", 1.3), 5: ("new", 4.0)}
    assert busiest(before, after, seconds=1.0) == ("cc1plus", "make")


def test_a_real_busy_process_disturbs_a_slice_and_a_sleeping_one_does_not(monkeypatch):
    burn = "import time\nend = time.perf_counter() + 60\nwhile time.perf_counter() < end: pass"
    worker = subprocess.Popen(["sleep", "60"])
    watched = Watched(run_id="r", measured=worker.pid, workers=(worker.pid,), in_slice=True)
    one = Sampler((), lambda: "no GPU", lambda _: None)
    busy = subprocess.Popen([sys.executable, "-P", "-c", burn])
    try:
        start = one.begin_slice(watched)
        time.sleep(0.6)
        sentence = one.end_slice(start, watched)
        assert sentence is not None
        assert "other processes used" in sentence
        # the same process as the measured worker: its load is no disturbance; whatever else runs here is left out
        monkeypatch.setattr(disturbance, "OTHER_SHARE", 1e9)
        alone = Watched(run_id="r", measured=busy.pid, workers=(busy.pid,), in_slice=True)
        start = one.begin_slice(alone)
        time.sleep(0.3)
        verdict = one.end_slice(start, alone)
        assert verdict is None or "virtual machines" in verdict
    finally:
        for process in (busy, worker):
            process.kill()
            process.wait()


def test_the_sampler_samples_about_four_times_a_second_and_costs_little():
    samples = []
    one = Sampler((), lambda: "no GPU here", samples.append)
    one.watch(Watched(in_slice=True))
    before = time.process_time()
    one.start()
    time.sleep(1.6)
    one.stop()
    cost = time.process_time() - before
    assert 3 <= len(samples) <= 6
    assert cost < 0.05, f"{cost / 1.6:.2%} of a core"
    assert samples[0].gpu is None
    assert samples[0].gpu_reason == "no GPU here"
    assert samples[-1].time_ns - samples[0].time_ns == pytest.approx((len(samples) - 1) * 0.25e9, rel=0.5)
    count = len(samples)
    time.sleep(2 * sampler.INTERVAL_S)
    assert len(samples) == count
