"""A real desktop (Xvfb with a window manager) and the real window on it, with the real engine."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

NEEDED = ("Xvfb", "openbox", "xdotool")
PATIENCE_S = 150.0
"""A busy machine starts workers slowly; nothing here waits this long on an idle one."""


@pytest.fixture(scope="session")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment of a fresh X display with a window manager."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1440x900x24", "-nolisten", "tcp"],
        pass_fds=(write,),
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    environment = {**os.environ, "DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb"}
    ready = tmp_path_factory.mktemp("desktop") / "ready"
    manager = subprocess.Popen(
        ["openbox", "--sm-disable", "--startup", f"touch {ready}"], env=environment, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + PATIENCE_S
    while not ready.exists():
        assert time.monotonic() < until, "the window manager did not start"
        time.sleep(0.05)
    yield environment
    manager.terminate()
    server.terminate()
    manager.wait(10)
    server.wait(10)


class Desktop:
    """The window as a person has it: a screen, a mouse and a keyboard."""

    def __init__(self, environment: dict[str, str], home: Path, model: str) -> None:
        folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "CONFIG", "STATE")}
        self.environment = {**environment, **folders, "HOME": str(home), "OMP_WAIT_POLICY": "passive"}
        self.home = home
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("driven.py")), model],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._read() == {"ready": True}

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            raise AssertionError(f"the window ended: {self._process.stderr.read()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def _ask(self, question: dict[str, str]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        reply = self._read()
        assert "error" not in reply, reply
        return reply["value"]

    def get(self, expression: str) -> Any:
        """A value of the window."""
        return self._ask({"get": expression})

    def holds(self, expression: str, patience_s: float = PATIENCE_S) -> bool:
        """True as soon as an expression over the window is, False when it is not after this long."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if self.get(expression):
                return True
            time.sleep(0.1)
        return False

    def wait(self, expression: str, what: str = "", patience_s: float = PATIENCE_S) -> None:
        """Wait until an expression over the window is true."""
        if self.holds(expression, patience_s):
            return
        status = self.get("window.status_text.text()")
        raise AssertionError(
            f"{what or expression} did not happen within {patience_s} s; the status bar says: {status}"
        )

    def xdotool(self, *words: str) -> None:
        subprocess.run(["xdotool", *words], env=self.environment, check=True, timeout=PATIENCE_S)

    def keys(self, *combinations: str) -> None:
        """Press keys, e.g. `ctrl+r`."""
        self.xdotool("key", "--delay", "40", *combinations)

    def type(self, text: str) -> None:
        """Type text."""
        self.xdotool("type", "--delay", "15", text)

    def click(self, name: str) -> None:
        """Click the widget with this accessible name."""
        place = self._ask({"center": name})
        assert place, f"there is no visible, enabled {name!r}"
        self.xdotool("mousemove", str(place[0]), str(place[1]), "sleep", "0.1", "click", "1")

    def engine_children(self) -> list[psutil.Process]:
        """Engine and workers of this window."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def close(self) -> str:
        """Close the window by its shortcut; returns what it said on standard error."""
        children = self.engine_children()
        self.keys("ctrl+q")
        self._process.wait(PATIENCE_S)  # before its stdin is closed: that would end it, too
        _, errors = self._process.communicate(timeout=10)
        assert self._process.returncode == 0, errors
        gone, alive = psutil.wait_procs(children, timeout=20)
        assert not alive, f"left behind: {alive}"
        assert len(gone) == len(children)
        return errors

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def open_window(desktop: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Desktop]]:
    """Opens the real window on a model; each test has its own home folder, shared by its windows."""
    opened: list[Desktop] = []

    def open_one(model: str = "bundled") -> Desktop:
        opened.append(Desktop(desktop, tmp_path, model))
        opened[-1].wait("window.isActiveWindow()", "the window manager's activation")
        return opened[-1]

    yield open_one
    for window in opened:
        window.kill()
