"""The only place that knows QProcess: starts the engine, turns its bytes into records, tells how it ended."""

import logging
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gptscope.profiling.records import Bye, Hello, Message, Shutdown

if TYPE_CHECKING:
    from gptscope.profiling.channel import Frame, FrameReader
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

logger = logging.getLogger(__name__)

BUDGET_S = 0.004
"""How long records may be handled in one go before the window gets a turn."""
_STDERR_LINES = 40
_CLOSE_MS = 2000

ENGINE = (sys.executable, "-P", "-m", "gptscope.profiling.engine")


class Session(QObject):
    """One connection to an engine. Starts it on demand; a dead engine is started again by the next command."""

    record = Signal(object, object)  # record, payload bytes
    started = Signal()
    ended = Signal(str)  # empty after a planned end, else one sentence

    def __init__(self, command: Sequence[str] = ENGINE, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = tuple(command)
        self._process: QProcess | None = None
        self._reader: FrameReader | None = None
        self._frames: deque[Frame] = deque()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._said_bye = False
        self._closing = False
        self._scheduled = False
        self.engine_pid = 0

    @property
    def running(self) -> bool:
        """True while the engine process lives (or is starting)."""
        return self._process is not None

    def start(self) -> None:
        """Start the engine unless it runs. Failure to start is told by `ended`."""
        if self._process is not None or self._closing:
            return
        from gptscope.profiling.channel import FrameReader  # its decoders take 50 ms: after the first paint

        self._reader, self._said_bye = FrameReader(), False
        self._frames.clear()
        self._stderr.clear()
        process = QProcess(self)
        process.setProcessEnvironment(QProcessEnvironment.systemEnvironment())
        process.readyReadStandardOutput.connect(self._on_output)
        process.readyReadStandardError.connect(self._on_stderr)
        process.errorOccurred.connect(self._on_error)
        process.finished.connect(self._on_finished)
        self._process = process
        process.start(self._command[0], list(self._command[1:]))

    def send(self, command: Message) -> None:
        """Send one command, starting the engine first when it is not there."""
        self.start()
        if self._process is not None:
            from gptscope.profiling.channel import encode

            self._process.write(encode(command))

    def close(self) -> None:
        """End the engine: ask it, wait two seconds, then kill it. The engine ends its workers itself."""
        self._closing = True
        process, self._process = self._process, None
        if process is None:
            return
        process.blockSignals(True)
        if process.state() != QProcess.ProcessState.NotRunning:
            from gptscope.profiling.channel import encode

            process.write(encode(Shutdown()))
            process.closeWriteChannel()
            deadline = time.monotonic() + _CLOSE_MS / 1000
            while process.state() != QProcess.ProcessState.NotRunning and time.monotonic() < deadline:
                process.readAllStandardOutput()  # a full pipe would keep the engine from ending
                process.waitForFinished(50)
            if process.state() != QProcess.ProcessState.NotRunning:
                process.kill()
                process.waitForFinished(_CLOSE_MS)
        process.deleteLater()

    def stderr_tail(self) -> str:
        """The last lines the engine wrote to its standard error."""
        return "\n".join(self._stderr)

    def _on_output(self) -> None:
        if self._process is None or self._reader is None:
            return
        self._frames.extend(self._reader.feed(bytes(self._process.readAllStandardOutput().data())))
        if not self._scheduled:
            self._handle()

    def _handle(self) -> None:
        """Hand out records for at most `BUDGET_S`; the rest waits until the window has had its turn."""
        self._scheduled = False
        until = time.perf_counter() + BUDGET_S
        while self._frames:
            header, payload = self._frames.popleft()
            self._deliver(header, payload)
            if time.perf_counter() >= until and self._frames:
                self._scheduled = True
                QTimer.singleShot(0, self._handle)
                return

    def _deliver(self, header: bytes, payload: bytes) -> None:
        from gptscope.profiling.channel import ChannelError, decode_record

        try:
            message = decode_record(header)
        except ChannelError as error:
            logger.warning("%s", error)
            return
        if isinstance(message, Bye):
            self._said_bye = True
        elif isinstance(message, Hello) and message.role == "engine":  # workers introduce themselves through it
            self.engine_pid = message.pid
            self.started.emit()
        self.record.emit(message, payload)

    def _on_stderr(self) -> None:
        if self._process is None:
            return
        text = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
        self._stderr.extend(line for line in text.splitlines() if line.strip())

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart and self._process is not None:
            reason = self._process.errorString()
            self._forget()
            self.ended.emit(f"The engine could not be started: {reason}.")

    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        if self._process is None:
            return
        self._on_output()
        self._on_stderr()
        while self._frames:
            self._deliver(*self._frames.popleft())
        planned = self._said_bye
        self._forget()
        if planned:
            self.ended.emit("")
        elif status == QProcess.ExitStatus.CrashExit:
            self.ended.emit(
                "The engine was ended from outside or crashed. What was measured is kept; Run starts it again."
            )
        else:
            self.ended.emit(
                f"The engine ended unexpectedly (exit code {code}). What was measured is kept; Run starts it again."
            )

    def _forget(self) -> None:
        process, self._process = self._process, None
        self.engine_pid = 0
        if process is not None:
            process.blockSignals(True)
            process.deleteLater()
