"""CPU counters become loads of the worker, of gptscope, and of everything else."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from gptscope.profiling.telemetry import cpu
from gptscope.profiling.telemetry.cpu import CpuReading, CpuSource, load_between

BURN = "import time\nend = time.perf_counter() + 60\nwhile time.perf_counter() < end: pass"


def reading(seconds: float, busy: float, own: float = 0.0, steal: float | None = 0.0, **workers: float) -> CpuReading:
    pids = {int(name[1:]): value for name, value in workers.items()}
    return CpuReading(time_ns=int(seconds * 1e9), busy_s=busy, steal_s=steal, own_s=own, workers_s=pids)


def test_busy_time_is_split_between_worker_gptscope_and_others():
    before = reading(10.0, 100.0, own=1.0, p7=20.0, p8=5.0)
    after = reading(12.0, 104.5, own=1.1, steal=0.4, p7=23.0, p8=5.2)
    load = load_between(before, after, measured=7)
    assert load.seconds == 2.0
    assert load.worker_s == pytest.approx(3.0)
    assert load.own_s == pytest.approx(0.3), "engine and client, and the worker that waits"
    assert load.other_s == pytest.approx(1.2)
    assert load.steal_s == pytest.approx(0.4)
    assert load.percent(load.other_s) == pytest.approx(60.0)


def test_a_worker_that_began_in_between_counts_from_zero_and_one_that_ended_not_at_all():
    load = load_between(reading(0, 0, p7=3.0), reading(1, 1, p9=0.6), measured=9)
    assert load.worker_s == pytest.approx(0.6)
    assert load.other_s == pytest.approx(0.4)


def test_rounding_of_the_counters_never_gives_negative_loads():
    load = load_between(reading(0, 10.0, p7=5.0), reading(1, 10.9, p7=6.0), measured=7)
    assert load.other_s == 0.0


def test_steal_that_the_system_does_not_tell_is_unknown():
    load = load_between(reading(0, 0, steal=None), reading(1, 1, steal=None), measured=None)
    assert load.steal_s is None
    assert CpuSource(()).sample(load).steal_percent is None


def test_a_real_busy_process_is_seen_as_worker_or_as_other():
    process = subprocess.Popen([sys.executable, "-P", "-c", BURN])
    try:
        source, blind_source = CpuSource([os.getpid()]), CpuSource([os.getpid()])
        before, blind_before = source.read([process.pid]), blind_source.read([])
        deadline = time.monotonic() + 60
        after = before
        while load_between(before, after, process.pid).worker_s < 0.5:  # however much others crowd it out
            assert time.monotonic() < deadline
            time.sleep(0.1)
            after = source.read([process.pid])
        blind_after = blind_source.read([])
    finally:
        process.kill()
        process.wait()
    seen = load_between(before, after, process.pid)
    blind = load_between(blind_before, blind_after, None)
    assert seen.worker_s <= 1.1 * seen.seconds, "one thread"
    assert blind.other_s > 0.8 * seen.worker_s
    assert blind.worker_s == 0.0


def test_a_compilers_time_is_the_workers_time():
    text = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])"
    process = subprocess.Popen([sys.executable, "-P", "-c", text])
    try:
        source = CpuSource([])
        deadline = time.monotonic() + 30
        while source.read([process.pid], descendants=True).workers_s[process.pid] < 0.5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        alone = source.read([process.pid]).workers_s[process.pid]
    finally:
        for child in psutil.Process(process.pid).children():
            child.kill()
        process.wait()
    assert alone < 0.5


def test_a_worker_that_has_ended_is_left_out():
    source = CpuSource([2**22 + 1])
    assert source.read([2**22 + 1]).workers_s == {}
    assert source.resident_bytes(2**22 + 1) is None
    assert source.resident_bytes(os.getpid()) > 1 << 20


def test_slow_facts_are_read_rarely(monkeypatch):
    calls = []

    def slow():
        calls.append(1)
        begun = time.thread_time()
        while time.thread_time() < begun + 0.02:
            pass
        return 5.0

    fact = cpu._Slow(slow, None)
    assert [fact.read() for _ in range(10)] == [5.0] * 10
    assert len(calls) == 1
    fact._next_s = 0.0
    fact.read()
    assert fact._next_s - time.perf_counter() > 15, "20 ms every 20 s: a thousandth"


def test_heat_is_seen_where_the_system_counts_it(tmp_path, monkeypatch):
    for number in range(2):
        folder = tmp_path / f"cpu{number}" / "thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text("3\n")
        (folder / "package_throttle_count").write_text("4\n")
    monkeypatch.setattr(cpu, "Path", lambda _: tmp_path)
    assert cpu.throttle_count() == 14
    monkeypatch.setattr(cpu, "Path", lambda _: tmp_path / "nothing")
    assert cpu.throttle_count() is None


def test_sensors_that_are_missing_or_broken_are_unknown(monkeypatch):
    def broken():
        raise OSError

    monkeypatch.setattr(psutil, "cpu_freq", broken)
    assert cpu._frequency_mhz() == (None, None)
    monkeypatch.setattr(psutil, "cpu_freq", lambda: None)
    assert cpu._frequency_mhz() == (None, None)
    monkeypatch.setattr(psutil, "sensors_temperatures", broken)
    assert cpu._temperature_c() is None
    monkeypatch.setattr(psutil, "sensors_temperatures", dict)
    assert cpu._temperature_c() is None
