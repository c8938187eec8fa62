"""Which process writes a run, and whether it still lives, so that a run cut short is told from a running one."""

import platform
import time
from dataclasses import dataclass
from functools import cache

import psutil

SILENT_AFTER_S = 60.0
"""A writer on another computer that has written nothing for this long is taken for gone."""
_START_TOLERANCE_S = 2.0


@dataclass(frozen=True)
class Writer:
    """A process, told apart from a later one with the same number by its start time."""

    host: str
    pid: int
    started: float
    """Unix time in seconds."""


@cache
def this_process() -> Writer:
    """The calling process."""
    process = psutil.Process()
    return Writer(host=platform.node(), pid=process.pid, started=process.create_time())


def is_alive(writer: Writer, written_unix_ns: int) -> bool:
    """Whether the writer may still add records; one on another computer is judged by its last sign of life."""
    if writer.host != platform.node():
        return (time.time_ns() - written_unix_ns) / 1e9 < SILENT_AFTER_S
    try:
        process = psutil.Process(writer.pid)
        same = abs(process.create_time() - writer.started) < _START_TOLERANCE_S
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # another user's process: it exists
        return True
