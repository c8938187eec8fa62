"""Drives the comparison of outputs: the same windows of text and prompts through baseline and candidates.

When all workers are loaded, the baseline answers each window right before the candidates. When memory holds only one,
the baseline's answers wait in a temporary file.
"""

import tempfile
from collections.abc import Callable, Sequence
from typing import Protocol

from gptscope.profiling import channel
from gptscope.profiling.engine.limits import Limits
from gptscope.profiling.engine.variant_run import VariantRun
from gptscope.profiling.engine.worker_handle import WorkerError
from gptscope.profiling.quality.comparison import QualityComparison
from gptscope.profiling.quality.rows import LogitWindow
from gptscope.profiling.records import (
    EvaluateWindow,
    Failure,
    FailureKind,
    ForcedGaps,
    ForceTokens,
    GreedyPrompt,
    GreedyTokens,
    Logits,
    Quality,
)

GREEDY_TOKENS = 48
"""Per prompt: long enough for a wrong rounding to show, short enough for a slow model."""


class EvaluationError(Exception):
    """The answers do not fit together; the message says how."""


class _Answers:
    """Collects what one worker answers to one question."""

    def __init__(self, run: VariantRun, limits: Limits) -> None:
        self._run, self._limits = run, limits

    async def window(self, index: int, take: Callable[[Logits, bytes], None]) -> int:
        """Hand the pieces of one window to `take`; return how many windows there are."""
        problems: list[str] = []
        count = 0

        def guarded(piece: Logits, payload: bytes) -> None:
            nonlocal count
            count = piece.windows
            try:
                take(piece, payload)
            except ValueError as error:
                problems.append(str(error))

        self._run.on_logits = guarded
        await self._run.ask(
            EvaluateWindow(window=index), silence_s=self._limits.evaluate_s, doing="evaluating the output"
        )
        if problems:
            raise EvaluationError(problems[0])
        return count

    async def prompt(self, index: int) -> GreedyTokens | None:
        """The greedy continuation of one prompt; None when there is no such prompt."""
        answers: list[GreedyTokens] = []
        self._run.on_greedy = answers.append
        command = GreedyPrompt(prompt=index, new_tokens=GREEDY_TOKENS)
        await self._run.ask(command, silence_s=self._limits.evaluate_s, doing="continuing a prompt")
        return answers[0] if answers else None

    async def gaps(self, theirs: GreedyTokens) -> ForcedGaps | None:
        """How far each token of another model's continuation lies below this model's own choice."""
        answers: list[ForcedGaps] = []
        self._run.on_gaps = answers.append
        command = ForceTokens(prompt=theirs.prompt, new_tokens=GREEDY_TOKENS, token_ids=theirs.token_ids)
        await self._run.ask(command, silence_s=self._limits.evaluate_s, doing="judging a continuation")
        return answers[0] if answers else None


class BaselineAnswers(Protocol):
    """The baseline's answers, one window at a time."""

    windows: int
    """Known after the first window."""
    prompts: int
    """Known after the first prompt."""

    async def window(self, index: int) -> LogitWindow: ...

    async def prompt(self, index: int) -> GreedyTokens | None: ...

    async def gaps(self, theirs: GreedyTokens) -> ForcedGaps | None:
        """None: the baseline is not there any more."""


class LiveBaseline:
    """Asks the baseline's worker when an answer is needed."""

    def __init__(self, run: VariantRun, limits: Limits) -> None:
        self._answers = _Answers(run, limits)
        self.windows = 1
        self.prompts = 1

    async def window(self, index: int) -> LogitWindow:
        window = LogitWindow()
        self.windows = await self._answers.window(index, window.add)
        return window

    async def prompt(self, index: int) -> GreedyTokens | None:
        answer = await self._answers.prompt(index)
        self.prompts = answer.prompts if answer is not None else 0
        return answer

    async def gaps(self, theirs: GreedyTokens) -> ForcedGaps | None:
        return await self._answers.gaps(theirs)


class SpooledBaseline:
    """Holds all of the baseline's answers in a temporary file, which vanishes with this object or the process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="gptscope-logits-")  # noqa: SIM115 - lives as long as this object
        self._spans: list[tuple[int, int]] = []
        self._prompts: list[GreedyTokens] = []
        self.windows = 0
        self.prompts = 0

    async def record(self, run: VariantRun, limits: Limits) -> None:
        """Ask the baseline everything.

        Raises:
            OSError: No space is left for the answers.
        """
        answers = _Answers(run, limits)
        live = LiveBaseline(run, limits)
        problems: list[OSError] = []

        def write(piece: Logits, payload: bytes) -> None:
            try:
                self._file.write(channel.encode(piece, payload))
            except OSError as error:
                problems.append(error)

        index, count = 0, 1
        while index < count:
            start = self._file.tell()
            count = await answers.window(index, write)
            if problems:
                raise problems[0]
            self._spans.append((start, self._file.tell()))
            index += 1
        while len(self._prompts) < live.prompts:
            answer = await live.prompt(len(self._prompts))
            if answer is not None:
                self._prompts.append(answer)
        self.windows, self.prompts = len(self._spans), len(self._prompts)

    async def window(self, index: int) -> LogitWindow:
        start, end = self._spans[index]
        self._file.seek(start)
        window = LogitWindow()
        for header, payload in channel.FrameReader().feed(self._file.read(end - start)):
            piece = channel.decode_record(header)
            assert isinstance(piece, Logits), "only logits are written"
            window.add(piece, payload)
        return window

    async def prompt(self, index: int) -> GreedyTokens | None:
        return self._prompts[index]

    async def gaps(self, theirs: GreedyTokens) -> ForcedGaps | None:
        del theirs
        return None

    def close(self) -> None:
        """Give the disk space back."""
        self._file.close()


async def compare(
    baseline: BaselineAnswers,
    baseline_run_id: str,
    candidates: Sequence[VariantRun],
    limits: Limits,
    text: str,
    on_progress: Callable[[int, int, str], None],
) -> list[tuple[VariantRun, Quality | Exception]]:
    """Put the same windows and prompts to all and compare each candidate with the baseline.

    Returns:
        For each candidate its result, or why there is none.

    Raises:
        WorkerError: The baseline's worker failed.
        EvaluationError: The baseline's answers are damaged.
    """
    sides = {run.index: (run, QualityComparison(run.run_id, baseline_run_id, text)) for run in candidates}
    results: list[tuple[VariantRun, Quality | Exception]] = []
    index = 0
    while index < baseline.windows and sides:
        window = await baseline.window(index)
        for run, comparison in tuple(sides.values()):

            def take(piece: Logits, payload: bytes, comparison: QualityComparison = comparison) -> None:
                comparison.add_piece(window, piece, payload)  # noqa: B023 - used before the next window

            try:
                await _Answers(run, limits).window(index, take)
            except (WorkerError, EvaluationError) as error:
                results.append((run, error))
                del sides[run.index]
        index += 1
        on_progress(index, baseline.windows, "windows")
    prompt = 0
    while prompt < baseline.prompts and sides:
        ours = await baseline.prompt(prompt)
        for run, comparison in tuple(sides.values()):
            try:
                theirs = await _Answers(run, limits).prompt(prompt)
            except WorkerError as error:
                results.append((run, error))
                del sides[run.index]
                continue
            if ours is not None and theirs is not None:
                comparison.add_prompt(ours, theirs, await _judged(baseline, ours, theirs))
        prompt += 1
        on_progress(prompt, baseline.prompts, "prompts")
    return [*results, *((run, comparison.result()) for run, comparison in sides.values())]


async def _judged(baseline: BaselineAnswers, ours: GreedyTokens, theirs: GreedyTokens) -> ForcedGaps | None:
    """What the baseline finds of the candidate's text; its own text it need not read again."""
    if theirs.token_ids == ours.token_ids:
        return ForcedGaps(prompt=ours.prompt, gaps=(0.0,) * len(ours.token_ids))
    return await baseline.gaps(theirs)


def failure_of(error: Exception, run_id: str) -> Failure:
    """A failure record for what went wrong while comparing."""
    if isinstance(error, WorkerError):
        return error.failure
    kind: FailureKind = "disk" if isinstance(error, OSError) else "internal"
    reason = f"{error.strerror} in {tempfile.gettempdir()}." if isinstance(error, OSError) else str(error)
    return Failure(kind=kind, message=f"The outputs could not be compared: {reason}", run_id=run_id)
