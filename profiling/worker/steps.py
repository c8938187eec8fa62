"""The four workloads as steps that can be repeated, timed and profiled."""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from torch import Tensor

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.prepare import PreparedModel
from gptscope.models.training import TrainStep
from gptscope.profiling.experiment import Workload
from gptscope.profiling.records import StepKind
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.texts import FirstSequenceText, TokenSource
from gptscope.profiling.worker.timing import stopwatch_for


class Workbench(ABC):
    """One workload on one prepared model."""

    kind: StepKind
    """The steps that warm-up, profile and headline look at."""

    def __init__(self, prepared: PreparedModel, work: Workload) -> None:
        self.prepared, self.work = prepared, work
        self.watch = stopwatch_for(prepared.device)

    @abstractmethod
    def run(self, reporter: StepReporter, steps: int) -> None:
        """Do and report `steps` steps of the workload (decode, generate: whole sequences)."""

    @abstractmethod
    def warm(self, reporter: StepReporter, steps: int) -> None:
        """Do and report `steps` steps of `kind`, in the same shapes as `run`."""

    @abstractmethod
    def single(self) -> None:
        """Do one step of `kind` without timing or reporting it, for the profiler."""

    def before_profile(self, steps: int) -> None:
        """Get ready for so many calls of `single` in a row, at most `most_profiled_steps`."""
        del steps

    def produced(self, steps: int) -> list[int]:
        """Tokens of all sequences in each of the last `steps` calls of `single`."""
        return [self.tokens_per_step] * steps

    @property
    def most_profiled_steps(self) -> int | None:
        """How many calls of `single` can follow each other; None: any number."""
        return None

    @property
    def longest_warm_up(self) -> int | None:
        """Fixed number of warm-up steps; None: until the times are steady."""
        return None

    @property
    def cycle(self) -> int:
        """Steps of `kind` after which all shapes have been seen."""
        return 1

    @property
    def tokens_per_step(self) -> int:
        """Tokens of all sequences in one step of `kind`."""
        return self.work.batch * self.work.context

    @property
    def context(self) -> int:
        """Tokens that the next step of `kind` attends to."""
        return self.work.context

    @property
    def cache_bytes(self) -> int | None:
        """Size of the KV cache; None where the workload has none."""
        return None


class TrainBench(Workbench):
    """Optimizer steps on a fixed order of batches: step k sees the same tokens in every variant."""

    kind: StepKind = "train"
    warm_up_steps = 3
    """Fixed, so that the k-th measured step is the k-th step in every variant and loss curves can be laid side by side.
    The first step allocates gradients and optimizer state, the second finds them."""

    def __init__(self, prepared: PreparedModel, work: Workload, source: TokenSource) -> None:
        super().__init__(prepared, work)
        self._source = source
        self._step = TrainStep(prepared)
        self._number = 0
        self._ready: list[Tensor] = []

    @property
    def longest_warm_up(self) -> int | None:
        return self.warm_up_steps

    def run(self, reporter: StepReporter, steps: int) -> None:
        losses: list[Tensor] = []
        batches = [self._next_batch() for _ in range(steps)]
        self.watch.start()
        for tokens_BL in batches:
            losses.append(self._step(tokens_BL))
            self.watch.lap()
            if self.watch.due():
                self._report(reporter, losses)
                self.watch.start()
        self._report(reporter, losses)

    def warm(self, reporter: StepReporter, steps: int) -> None:
        self.run(reporter, steps)

    def single(self) -> None:
        self._step(self._ready.pop(0))

    def before_profile(self, steps: int) -> None:
        """Make the batches, which is no part of a step."""
        self._ready = [self._next_batch() for _ in range(steps)]

    def _next_batch(self) -> Tensor:
        tokens_BL = self._source.training_batch(self._number, self.work.batch, self.work.context)
        self._number += 1
        return tokens_BL.to(self.prepared.device)

    def _report(self, reporter: StepReporter, losses: list[Tensor]) -> None:
        contexts = [self.work.context] * len(losses)
        tokens = [self.tokens_per_step] * len(losses)
        reporter.report("train", self.watch, tokens=tokens, contexts=contexts, losses=losses)
        losses.clear()


class PrefillBench(Workbench):
    """Reading a whole prompt and predicting the first new token."""

    kind: StepKind = "prefill"

    def __init__(self, prepared: PreparedModel, work: Workload, tokens_BL: Tensor) -> None:
        super().__init__(prepared, work)
        self._tokens_BL = tokens_BL.to(prepared.device)
        self._session = DecodeSession(prepared, work.batch, work.context)

    def run(self, reporter: StepReporter, steps: int) -> None:
        waiting = 0
        for _ in range(steps):
            self.watch.start()  # from an idle device, as a user's prompt comes
            self._session.prefill(self._tokens_BL)
            self.watch.lap()
            waiting += 1
            if self.watch.due():
                self._report(reporter, waiting)
                waiting = 0
        self._report(reporter, waiting)

    def warm(self, reporter: StepReporter, steps: int) -> None:
        self.run(reporter, steps)

    def single(self) -> None:
        self._session.prefill(self._tokens_BL)

    @property
    def cache_bytes(self) -> int | None:
        return self._session.cache_bytes

    def _report(self, reporter: StepReporter, steps: int) -> None:
        contexts = [self.work.context] * steps
        reporter.report("prefill", self.watch, tokens=[self.tokens_per_step] * steps, contexts=contexts)


class Session(Protocol):
    """What decodes sequences."""

    @property
    def length(self) -> int:
        """Tokens per sequence that were read so far."""

    @property
    def cache_bytes(self) -> int:
        """Bytes that the KV cache occupies now."""

    def prefill(self, tokens_BL: Tensor) -> Tensor:
        """Read prompts; return each sequence's next token, `[B]`."""


SessionT = TypeVar("SessionT", bound=Session)


class SequenceBench(Workbench, Generic[SessionT]):
    """Sequences of one prefill and then steps that give tokens.

    Args:
        prepared: The model with its levers.
        work: Its `context` is ignored: the prompts decide.
        tokens_BL: Prompts.
        session: Room for prompts and new tokens.
        stream: Shows the text of the first measured sequence; None: no text is shown.
    """

    kind: StepKind = "decode"

    def __init__(
        self,
        prepared: PreparedModel,
        work: Workload,
        tokens_BL: Tensor,
        session: SessionT,
        stream: FirstSequenceText | None,
    ) -> None:
        super().__init__(prepared, work)
        self._tokens_BL = tokens_BL.to(prepared.device)
        self._prompt_length = tokens_BL.shape[1]
        self._session = session
        self._stream = stream
        self._left = 0
        """Tokens of the sequence that are still to come."""

    @property
    def tokens_per_step(self) -> int:
        return self.work.batch

    @property
    def context(self) -> int:
        return self._session.length + 1

    @property
    def cycle(self) -> int:
        return self.work.new_tokens - 1

    @property
    def cache_bytes(self) -> int | None:
        return self._session.cache_bytes

    def run(self, reporter: StepReporter, steps: int) -> None:
        for _ in range(steps):
            stream = self._stream if reporter.phase == "measure" else None
            self._begin(reporter, stream)
            while self._left > 0:
                self._advance(reporter, self._left, stream)
            if stream is not None:
                stream.end()
                self._stream = None  # greedy text is the same every time

    def warm(self, reporter: StepReporter, steps: int) -> None:
        if self.work.new_tokens == 1:
            self._begin(reporter, None)
        while steps > 0 and self.work.new_tokens > 1:
            if self._left == 0:
                self._begin(reporter, None)
            steps -= self._advance(reporter, steps, None)

    def _begin(self, reporter: StepReporter, stream: FirstSequenceText | None) -> None:
        self.watch.start()
        first_B = self._session.prefill(self._tokens_BL)
        self.watch.lap()
        length = self._prompt_length
        reporter.report("prefill", self.watch, tokens=[self.work.batch * length], contexts=[length])
        if stream is not None:
            stream.show([first_B])
        self._left = self.work.new_tokens - 1

    @abstractmethod
    def _advance(self, reporter: StepReporter, most_steps: int, stream: FirstSequenceText | None) -> int:
        """Decode until the sequence is complete or `most_steps` are done; return how many were.

        Readings and text are sent between steps, a few times a second; `_left` says what is left.
        """


class DecodeBench(SequenceBench[DecodeSession]):
    """One token of each sequence per step.

    Args:
        prepared: The model with its levers.
        work: Its `context` is ignored: the prompts decide.
        tokens_BL: Prompts.
        stream: Shows the text of the first measured sequence; None: no text is shown.
    """

    def __init__(
        self, prepared: PreparedModel, work: Workload, tokens_BL: Tensor, stream: FirstSequenceText | None = None
    ) -> None:
        session = DecodeSession(prepared, work.batch, tokens_BL.shape[1] + work.new_tokens)
        super().__init__(prepared, work, tokens_BL, session, stream)

    @property
    def most_profiled_steps(self) -> int | None:
        return self.work.new_tokens

    def single(self) -> None:
        self._session.step()

    def before_profile(self, steps: int) -> None:
        """Prefill, so that decode steps can follow."""
        del steps
        self._session.prefill(self._tokens_BL)
        self._left = 0

    def _advance(self, reporter: StepReporter, most_steps: int, stream: FirstSequenceText | None) -> int:
        session, watch = self._session, self.watch
        steps = min(most_steps, self._left)
        tokens: list[Tensor] = []
        attended = session.length + 1
        watch.start()
        for _ in range(steps):
            tokens.append(session.step())
            watch.lap()
            if watch.due():
                attended = self._report(reporter, tokens, attended, stream)
                watch.start()
        self._report(reporter, tokens, attended, stream)
        self._left -= steps
        return steps

    def _report(
        self, reporter: StepReporter, tokens: list[Tensor], attended: int, stream: FirstSequenceText | None
    ) -> int:
        after = attended + len(tokens)
        contexts = range(attended, after)
        reporter.report("decode", self.watch, tokens=[self.work.batch] * len(tokens), contexts=contexts)
        if stream is not None and tokens:
            stream.show(tokens)
        tokens.clear()
        return after
