"""What the worker says: records at once, progress at most ten times a second."""

import time

from gptscope.profiling.channel import FrameWriter
from gptscope.profiling.records import Message, Notice, Phase, Progress

PROGRESS_INTERVAL_S = 0.1


class Output:
    """The worker's side of the channel."""

    def __init__(self, writer: FrameWriter) -> None:
        self._writer = writer
        self._last_progress_s = 0.0
        self.run_id: str | None = None
        """The run that progress and notices belong to; None while no variant is loaded."""

    def emit(self, record: Message, payload: bytes = b"") -> None:
        """Send one record now."""
        self._writer.send(record, payload)

    def progress(self, phase: Phase, done: float, total: float, unit: str = "", note: str = "") -> None:
        """Say how far a phase is. Skipped when the last word is younger than a tenth of a second, except at the end."""
        now_s = time.monotonic()
        finished = total > 0 and done >= total
        if not finished and done > 0 and now_s - self._last_progress_s < PROGRESS_INTERVAL_S:
            return
        self._last_progress_s = now_s
        self.emit(Progress(phase=phase, done=done, total=total, unit=unit, note=note, run_id=self.run_id))

    def warn(self, message: str) -> None:
        """Tell a person something that is not a failure."""
        self.emit(Notice(message=message, level="warning", run_id=self.run_id))

    def tell(self, message: str) -> None:
        """Tell a person something good to know."""
        self.emit(Notice(message=message, run_id=self.run_id))
