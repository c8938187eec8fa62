"""Temporary folders that nobody has to clean up: each has its process's number.

The engine removes a worker's folders when the worker has ended, however it ended, and every worker and every opener of
traces sweeps at its start, for engines and windows that were killed. Compilers that a worker starts write there too:
killed ones leave files like `cc1Xy.s`.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

_NAME = re.compile(r"gptscope-worker-(\d+)-.+")
_CLOCK_SLACK_S = 2.0


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for this process, removed at the end of the block, or by the next worker if this process is killed."""
    folder = Path(tempfile.mkdtemp(prefix=f"gptscope-worker-{psutil.Process().pid}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lend_to_children() -> Path:
    """Make a folder for the temporary files of all processes that this one starts from now on; its own stay elsewhere.

    Call it once, early. torch keeps its cache of compiled kernels in the temporary folder of this process, where the
    next worker finds it.
    """
    tempfile.gettempdir()  # remembered by Python, so that it does not follow the variables below
    folder = Path(tempfile.mkdtemp(prefix=f"gptscope-worker-{os.getpid()}-"))
    for name in ("TMP", "TEMP") if sys.platform == "win32" else ("TMPDIR",):
        os.environ[name] = str(folder)
    return folder


def remove_folders_of(pid: int) -> None:
    """Remove what a process that has ended left behind. Never raises."""
    for folder in Path(tempfile.gettempdir()).glob(f"gptscope-worker-{pid}-*"):
        if not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)


def sweep_left_over_folders() -> int:
    """Remove the folders of workers that were killed; return how many. Others' and living workers' stay."""
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob("gptscope-worker-*"):
        found = _NAME.fullmatch(folder.name)
        try:
            if found and not folder.is_symlink() and folder.is_dir() and _is_left_over(int(found[1]), folder):
                shutil.rmtree(folder)
                removed += 1
        except OSError:  # another worker sweeps too, or it belongs to another user
            continue
    return removed


def _is_left_over(pid: int, folder: Path) -> bool:
    """True when the folder's process has ended; a newer process may have got its number."""
    try:
        return psutil.Process(pid).create_time() > folder.stat().st_mtime + _CLOCK_SLACK_S
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False
