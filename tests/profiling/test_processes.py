"""What is asked of the operating system: a clean stdout, tied lives, and words for how a process ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from gptscope.profiling import processes

CHILD = """
import os, subprocess, sys, time
from gptscope.profiling import processes
frames = processes.protect_stdout()
processes.end_with_parent()
child = subprocess.Popen(["sleep", "222"])
frames.write(f"{child.pid}\\n".encode()); frames.flush()
how = sys.argv[1]
if how == "exit": sys.exit(7)
if how == "busy":
    while True: pass
if how == "closed": os.close(1); os.close(2)
time.sleep(222)
"""


def start(how: str) -> tuple[subprocess.Popen[bytes], psutil.Process]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **processes.new_session_options(),
    )
    return process, psutil.Process(int(process.stdout.readline()))


def ended(process: psutil.Process, seconds: float = 2.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def finish(process: subprocess.Popen[bytes]) -> int:
    code = process.wait(5)
    process.stdin.close()
    process.stdout.close()
    return code


def test_prints_go_to_stderr_and_frames_to_stdout():
    text = (
        "import os\n"
        "from gptscope.profiling.processes import protect_stdout\n"
        "frames = protect_stdout()\n"
        "print('python', flush=True); os.write(1, b'library'); os.system('echo child')\n"
        "frames.write(b'frame'); frames.flush()\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", text], capture_output=True, check=True)
    assert done.stdout == b"frame"
    assert done.stderr == b"python\nlibrarychild\n"


@pytest.mark.parametrize("how", ["sleep", "busy", "closed"])
def test_a_process_ends_with_all_it_started_when_its_input_is_closed(how):
    process, child = start(how)
    process.stdin.close()
    begun = time.perf_counter()
    assert process.wait(5) == -signal.SIGKILL
    assert time.perf_counter() - begun < 1.0
    assert ended(child)
    process.stdout.close()


def test_what_a_process_started_ends_with_it_and_its_exit_code_is_kept():
    process, child = start("exit")
    assert finish(process) == 7
    assert ended(child)


def test_what_a_process_started_ends_when_it_is_killed():
    process, child = start("sleep")
    process.kill()
    assert finish(process) == -signal.SIGKILL
    assert ended(child)


def test_kill_tree_reaches_children_that_left_the_group():
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '222'], start_new_session=True)\n"
        "print(child.pid, flush=True); time.sleep(222)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", text], stdout=subprocess.PIPE, **processes.new_session_options()
    )
    child = psutil.Process(int(process.stdout.readline()))
    processes.kill_tree(process.pid)
    assert process.wait(5) == -signal.SIGKILL
    assert ended(child)
    process.stdout.close()
    processes.kill_tree(process.pid)  # nothing is there any more: no error
    processes.kill_group(process.pid)


@pytest.mark.parametrize(
    ("code", "out_of_memory", "words"),
    [
        (0, False, "ended with exit code 0 in the middle of its work"),
        (-9, False, "was ended by signal 9 (SIGKILL: something outside gptscope killed it)"),
        (-9, True, "was killed by the system because memory ran out (signal 9, SIGKILL)"),
        (-11, True, "was ended by signal 11 (SIGSEGV: an invalid memory access inside a library)"),
        (-200, False, "was ended by signal 200"),
        (None, False, "ended in an unknown way"),
    ],
)
def test_an_end_is_described_in_words(code, out_of_memory, words):
    assert processes.describe_exit(code, out_of_memory=out_of_memory) == words


def test_a_kill_for_lack_of_memory_is_seen_in_the_systems_counter(tmp_path, monkeypatch):
    counter = tmp_path / "vmstat"
    counter.write_text("pgfault 12\noom_kill 3\n")
    monkeypatch.setattr(processes, "Path", lambda path: counter if path == "/proc/vmstat" else Path(tmp_path / "none"))
    watch = processes.OomWatch()
    assert not watch.happened()
    counter.write_text("pgfault 99\noom_kill 4\n")
    assert watch.happened()


def test_a_system_without_such_counters_gives_no_evidence(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "Path", lambda _: tmp_path / "none")
    assert not processes.OomWatch().happened()


def test_memory_use_of_a_process_knows_its_peak():
    before, _ = processes.memory_use(os.getpid())
    blocks = b"x" * (256 << 20)
    size = len(blocks)
    del blocks
    resident, peak = processes.memory_use(os.getpid())
    assert resident < before + size // 2
    assert peak > before + size // 2
    assert processes.memory_use(2**22 + 1) is None


def test_a_process_knows_its_age_to_a_few_hundredths_of_a_second() -> None:
    code = "from gptscope.profiling.processes import own_age_s; print(own_age_s())"
    ages = []
    for _ in range(2):
        begun_s = time.monotonic()
        age_s = float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        ages.append((age_s, time.monotonic() - begun_s))
    assert all(0 < age_s <= waited_s + 0.03 for age_s, waited_s in ages), ages
