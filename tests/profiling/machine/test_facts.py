"""What gptscope says about the computer agrees with what the system says."""

import os
import stat
import sys
from pathlib import Path

import psutil
import pytest

from gptscope.profiling import temp_folders
from gptscope.profiling.machine import compiler, facts


@pytest.fixture(autouse=True)
def _forget_cached_facts():
    """Each test asks the system anew."""
    cached = (facts.cpu_name, facts.cpu_features, facts._cpuinfo, facts.find_gpu, facts._cgroup_folders)
    for function in (*cached, compiler.find_compiler):
        function.cache_clear()
    yield
    for function in (*cached, compiler.find_compiler):
        function.cache_clear()


def test_machine_info_is_complete_or_gives_reasons():
    info = facts.machine_info()
    assert info.device_name == info.cpu_name != ""
    assert 1 <= info.physical_cores <= info.logical_cores == psutil.cpu_count()
    assert 0 < info.memory_bytes <= psutil.virtual_memory().total
    for field in ("compiler", "gpu_name"):
        assert (getattr(info, field) is None) == (field in info.unknown), field
    assert bool(info.cpu_features) != ("cpu_features" in info.unknown)


def test_facts_load_without_torch():
    import subprocess

    code = "import sys, gptscope.profiling.machine.facts as f; f.machine_info(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_available_memory_is_less_than_all_memory():
    assert 0 < facts.memory_available_bytes() <= facts.memory_limit_bytes()


def test_a_container_limit_bounds_memory_and_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    outer, inner = tmp_path, tmp_path / "inner"
    inner.mkdir()
    (outer / "memory.max").write_text("max\n")
    (outer / "cpu.max").write_text("100000 100000\n")
    (inner / "memory.max").write_text(f"{512 << 20}\n")
    (inner / "memory.current").write_text(f"{300 << 20}\n")
    (inner / "memory.stat").write_text(f"anon 5\ninactive_file {100 << 20}\nactive_file 7\n")
    (inner / "cpu.max").write_text("max 100000\n")
    monkeypatch.setattr(facts, "_cgroup_folders", lambda: (inner, outer))
    assert facts.memory_limit_bytes() == 512 << 20
    assert facts.memory_available_bytes() == (512 - 300 + 100) << 20
    assert facts.physical_cores() == 1


def test_processor_is_read_from_cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "cpuinfo"
    first = "processor\t: 0\nmodel name\t: Test CPU 3000\nflags\t\t: fpu avx2 AVX512_BF16 avx2\n"
    file.write_text(f"{first}\nprocessor\t: 1\nmodel name\t: another\n")
    monkeypatch.setattr(facts, "_CPUINFO", file)
    assert facts.cpu_name() == "Test CPU 3000"
    assert facts.cpu_features() == ("avx2", "avx512_bf16", "fpu")


def test_without_cpuinfo_the_architecture_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(facts, "_CPUINFO", tmp_path / "absent")
    assert facts.cpu_name() != ""
    info = facts.machine_info(check_compiler=False)
    assert bool(info.cpu_features) != ("cpu_features" in info.unknown)
    assert info.unknown["compiler"] == "The compiler was not checked."


def test_missing_compiler_is_a_reason_naming_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "no-such-compiler-here")
    found = compiler.find_compiler()
    assert found.path is None
    assert found.reason is not None
    assert "no-such-compiler-here" in found.reason


@pytest.mark.skipif(sys.platform == "win32", reason="uses a shell script as compiler")
def test_compiler_that_exists_but_cannot_compile_is_a_reason_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    script = tmp_path / "broken-cxx"
    script.write_text("#!/bin/sh\necho 'trial.cpp:1: fatal error: Python.h: No such file' >&2\nexit 1\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(script))
    found = compiler.find_compiler()
    assert found.path is None
    assert found.reason is not None
    assert "fatal error: Python.h" in found.reason


def test_no_room_to_try_the_compiler_is_a_reason_too(monkeypatch: pytest.MonkeyPatch):
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(temp_folders.tempfile, "mkdtemp", full)
    found = compiler.find_compiler()
    assert found.path is None
    assert "No space left" in (found.reason or "")


def test_versions_name_what_is_missing():
    versions = facts.package_versions()
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert versions["torch"][0].isdigit()
    te = versions["transformer_engine"]
    assert te[0].isdigit() or te.startswith("not installed")


def test_affinity_bounds_the_core_count(monkeypatch: pytest.MonkeyPatch):
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system has no CPU affinity")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    assert facts.physical_cores() == 1
