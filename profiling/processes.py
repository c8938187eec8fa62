"""What this project asks of operating systems about processes: one function each, with a fallback.

How nothing is left behind, whoever is killed: the engine starts every worker as leader of its own session and process
group, so that compilers which the worker starts are in that group. The worker's first act is `end_with_parent`: it
forks a guardian, which waits for the end of the worker or of the engine (the other end of the worker's stdin) and then
kills the group. It holds no lock, runs no library code and cannot be kept from running by a busy interpreter. So a
compiler ends also when engine and worker are killed in the same moment and nobody else knows about it.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_GUARD_POLL_MS = 1000
_MOST_DESCRIPTORS = 1024  # far above what is open before a worker's first import
_WATCH_S = 0.5


def protect_stdout() -> BinaryIO:
    """Take standard output for frames: return a private stream to it and send all other prints to stderr.

    Call it before anything that might print is imported. Prints of Python and of C libraries then go to stderr. The
    returned stream is buffered: flush it, or let `channel.FrameWriter` do so.
    """
    sys.stdout.flush()
    private = os.dup(1)  # not inherited by children
    os.dup2(2, 1)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (0, private):
            msvcrt.setmode(descriptor, os.O_BINARY)
    return os.fdopen(private, "wb")


def new_session_options() -> dict[str, Any]:
    """Keyword arguments for `subprocess.Popen` that put the child and all it starts into a group of their own."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def lead_own_session() -> None:
    """Leave the terminal's process group, so that Ctrl-C there reaches the client only. No effect where impossible."""
    if sys.platform != "win32":
        with contextlib.suppress(PermissionError):  # already the leader of a group
            os.setsid()


def end_with_parent() -> None:
    """Tie this process, and all that it starts, to the process at the other end of stdin (or the parent).

    Call it once, before the first thread. When the parent ends, when it closes our stdin, or when this process ends by
    whatever cause, the whole process group is killed. The parent therefore keeps stdin open until we have left.
    """
    lead_own_session()
    _ask_kernel_to_end_us()
    if not hasattr(os, "fork") or os.getpgrp() != os.getpid():
        _start_watcher()
        return
    try:
        _fork_guardian()
    except OSError:  # no process or memory left for it
        _start_watcher()


def end_with_stdin() -> None:
    """End this process at once when the other end of stdin is closed: for short jobs that start nothing themselves."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="watch-stdin", daemon=True).start()


def _ask_kernel_to_end_us() -> None:
    """Linux only: SIGKILL for us when the thread that started us ends. The guardian covers the rest."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _fork_guardian() -> None:
    worker, group = os.getpid(), os.getpgrp()
    watched, _held = os.pipe()  # the system closes `_held` when we end, which the guardian sees on `watched`
    if os.fork() != 0:
        os.close(watched)
        return
    try:
        _guard(worker, group, watched)
    finally:
        os._exit(0)


def _guard(worker: int, group: int, watched: int) -> None:
    """Wait for the end of the worker or of its parent, then kill the worker's group. Runs in the guardian."""
    import select

    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, b"gptscope-guard", 0, 0, 0)
    stdin = os.dup(0)
    low, high = sorted((watched, stdin))
    for first, last in ((0, low), (low + 1, high), (high + 1, _MOST_DESCRIPTORS)):
        os.closerange(first, last)  # the other ends of the worker's pipes must see nobody but the worker
    poll = select.poll()
    for descriptor in (watched, stdin):
        poll.register(descriptor, 0)  # a closed other end is always reported; data is left for the worker
    while os.getppid() == worker:
        events = poll.poll(_GUARD_POLL_MS)
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in events):
            break
        for descriptor, event in events:
            if event & select.POLLNVAL:
                poll.unregister(descriptor)  # a stdin that cannot be watched, e.g. a device on macOS
    os.killpg(group, signal.SIGKILL)


def _start_watcher() -> None:
    """Fallback without fork: a thread that looks whether the parent still lives."""
    parent = psutil.Process(os.getppid())

    def watch() -> None:
        while parent.is_running():
            time.sleep(_WATCH_S)
        kill_tree(os.getpid())

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()


def end_this_process_after(seconds: float) -> None:
    """End this process after some time even if it hangs; nothing happens when it has ended by itself before."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()


def parent_id() -> int | None:
    """Process id of the living parent; None when it is gone (where the system tells)."""
    parent = os.getppid()
    if sys.platform == "win32":
        return parent if psutil.pid_exists(parent) else None
    return parent


def kill_tree(pid: int) -> None:
    """Kill a process that leads its own group, the whole group, and descendants that left the group. Never raises."""
    try:
        strays = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        strays = []
    kill_group(pid)
    for process in [*strays, *_process(pid)]:
        try:
            process.kill()
        except psutil.Error:
            continue


def _process(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid)]
    except psutil.Error:
        return []


def kill_group(pid: int) -> None:
    """Kill what is left of the group of a process that has ended already. Never raises."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


_SIGNAL_MEANINGS = {
    "SIGSEGV": "an invalid memory access inside a library",
    "SIGBUS": "an invalid memory access, or a file on a full or vanished disk",
    "SIGILL": "an instruction that this processor does not have",
    "SIGABRT": "a library stopped it after an internal error",
    "SIGFPE": "an invalid arithmetic operation inside a library",
    "SIGTERM": "something asked it to end",
    "SIGKILL": "something outside gptscope killed it",
}


def describe_exit(code: int | None, *, out_of_memory: bool = False) -> str:
    """How a process ended, to follow the words `The worker`.

    Args:
        code: As `subprocess` reports it: negative for a signal; None when unknown.
        out_of_memory: `OomWatch` saw the system kill a process for lack of memory.
    """
    if code is None:
        return "ended in an unknown way"
    if code >= 0:
        return f"ended with exit code {code} in the middle of its work"
    number = -code
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"was ended by signal {number}"
    if name == "SIGKILL" and out_of_memory:
        return f"was killed by the system because memory ran out (signal {number}, {name})"
    meaning = _SIGNAL_MEANINGS.get(name)
    return f"was ended by signal {number} ({name}" + (f": {meaning})" if meaning else ")")


class OomWatch:
    """Tells whether the system has killed a process for lack of memory since this object was made.

    Linux counts such kills in /proc/vmstat and in the control group's `memory.events`; elsewhere nothing tells, and
    `happened` is False.
    """

    def __init__(self) -> None:
        self._before = _oom_kills()

    def happened(self) -> bool:
        """True when a counter has gone up."""
        return _oom_kills() > self._before


def _oom_kills() -> int:
    return _counter(Path("/proc/vmstat"), "oom_kill") + _counter(_cgroup_folder() / "memory.events", "oom_kill")


def _counter(path: Path, name: str) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0
    return sum(int(value) for key, _, value in (line.partition(" ") for line in lines) if key == name)


def _cgroup_folder() -> Path:
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    own = next((line.split("::", 1)[1] for line in lines if line.startswith("0::")), "/")
    return Path("/sys/fs/cgroup") / own.lstrip("/")


def memory_use(pid: int) -> tuple[int, int] | None:
    """Resident bytes of a process now and at most so far; None when it has ended. Unknown peaks equal the present."""
    try:
        info = psutil.Process(pid).memory_info()
    except psutil.Error:
        return None
    peak = getattr(info, "peak_wset", None) or _peak_kib(pid) * 1024
    return int(info.rss), max(int(info.rss), int(peak))


def _peak_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def own_age_s() -> float:
    """Seconds since this process was started.

    Linux counts a process's start from the machine's; psutil turns that into a date with the machine's start rounded to
    whole seconds, which is too coarse for the start of a program.
    """
    stat = Path("/proc/self/stat")
    if hasattr(time, "CLOCK_BOOTTIME") and stat.exists():
        after_name = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        started_s = int(after_name[19]) / os.sysconf("SC_CLK_TCK")  # proc(5): field 22, the name is the second
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s
    return time.time() - psutil.Process().create_time()
