"""Opens an exported trace in TensorBoard, when that is installed, and ends it with the window."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, QUrl
from PySide6.QtGui import QDesktopServices

_ADDRESS = "http://localhost:"
_END_MS = 2000
Tell = Callable[[str, str], None]
"""Sentence and level for the status bar."""


def missing_packages() -> list[str]:
    """What has to be installed first, by the names that pip knows."""
    needed = {"tensorboard": "tensorboard", "torch_tb_profiler": "torch-tb-profiler"}
    return [package for module, package in needed.items() if find_spec(module) is None]


def _install_command(missing: list[str]) -> str:
    """What installs packages beside this gptscope, whichever way it was installed; it is no package of an index."""
    if "pipx" in Path(sys.prefix).parts:
        return f"pipx inject gptscope {' '.join(missing)}"
    python = subprocess.list2cmdline([sys.executable]) if sys.platform == "win32" else shlex.quote(sys.executable)
    return f"{python} -m pip install {' '.join(missing)}"


class TensorBoard(QObject):
    """One server, started when it is first wanted."""

    def __init__(self, parent: QObject, tell: Tell) -> None:
        super().__init__(parent)
        self._tell = tell
        self._process: QProcess | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._said = ""

    def folder(self) -> Path | None:
        """Where traces for it belong; None when it is not installed, which is told."""
        missing = missing_packages()
        if missing:
            self._tell(
                f"TensorBoard cannot be started: {' and '.join(missing)} not installed. Install with "
                f"`{_install_command(missing)}`, or use Export trace > For TensorBoard.",
                "warning",
            )
            return None
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="gptscope-tensorboard-")
        return Path(self._folder.name)

    def show(self, command: list[str] | None = None) -> None:
        """Start the server on `folder`; a browser opens once it says its address.

        Args:
            command: Program and arguments to start instead of TensorBoard.
        """
        assert self._folder is not None, "the trace comes first"
        if self._process is not None:
            self._open_browser()  # it finds new runs in its folder by itself
            return
        program, *arguments = command or [
            sys.executable, "-m", "tensorboard.main", "--logdir", self._folder.name, "--port", "0",
        ]  # fmt: skip
        self._said = ""
        process = QProcess(self)
        process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(self._ended)
        process.errorOccurred.connect(self._failed)
        self._process = process
        self._tell("Starting TensorBoard…", "info")
        process.start(program, arguments)

    def close(self) -> None:
        """End the server and remove its folder."""
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(_END_MS)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def address(self) -> str | None:
        """Where it can be seen, once it has said so."""
        start = self._said.find(_ADDRESS)
        rest = self._said[start:] if start >= 0 else ""
        return rest.split()[0] if len(rest.split()) > 1 else None

    def _read(self) -> None:
        if self._process is None:
            return
        known = self.address
        self._said += bytes(self._process.readAllStandardOutput().data()).decode(errors="replace")
        if known is None and self.address is not None:
            self._open_browser()

    def _open_browser(self) -> None:
        if self.address is not None:
            QDesktopServices.openUrl(QUrl(f"{self.address}#pytorch_profiler"))
            self._tell(f"TensorBoard shows the trace at {self.address} until this window closes.", "info")

    def _failed(self) -> None:
        if self._process is not None and self._process.error() == QProcess.ProcessError.FailedToStart:
            self._tell(f"TensorBoard could not be started: {self._process.errorString()}.", "error")
            self._process = None

    def _ended(self) -> None:
        if self._process is not None:
            last = self._said.strip().splitlines()[-1:] or ["it said nothing"]
            self._tell(f"TensorBoard ended: {last[0]}", "error")
            self._process = None
