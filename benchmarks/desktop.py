"""A bare X display with a window manager, for the benchmarks of the window: windows are placed, shown and active."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

NEEDED = ("Xvfb", "openbox")
_PATIENCE_S = 60.0


@contextlib.contextmanager
def desktop(size: str = "1600x1000") -> Iterator[dict[str, str]]:
    """Environment of a fresh display and home folder; both end with the block."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"This needs {' and '.join(missing)}: on Debian or Ubuntu, apt-get install xvfb openbox.")
    with tempfile.TemporaryDirectory(prefix="gptscope-desktop-") as home:
        read, write = os.pipe()
        server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size}x24", "-nolisten", "tcp"],
            pass_fds=(write,),
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        try:
            with os.fdopen(read) as pipe:
                number = pipe.readline().strip()
            yield from _managed({**os.environ, **_folders(Path(home)), "DISPLAY": f":{number}"}, Path(home))
        finally:
            server.terminate()
            server.wait(_PATIENCE_S)


def _folders(home: Path) -> dict[str, str]:
    folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "CONFIG", "STATE")}
    return {**folders, "QT_QPA_PLATFORM": "xcb"}


def _managed(environment: dict[str, str], home: Path) -> Iterator[dict[str, str]]:
    ready = home / "ready"
    manager = subprocess.Popen(
        ["openbox", "--sm-disable", "--startup", f"touch {ready}"], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + _PATIENCE_S
        while not ready.exists():
            if time.monotonic() > until:
                raise SystemExit("The window manager did not start.")
            time.sleep(0.02)
        yield environment
    finally:
        manager.terminate()
        manager.wait(_PATIENCE_S)
