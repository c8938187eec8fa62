"""Decoding in steps that give one token or several: guesses are checked together."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gptscope.models.decoding.speculative import SpeculativeSession
from gptscope.models.prepare import PreparedModel
from gptscope.profiling.experiment import Workload
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.steps import SequenceBench
from gptscope.profiling.worker.texts import FirstSequenceText


@dataclass
class _Waiting:
    """Steps that were not reported yet."""

    steps: list[Tensor] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)


class SpeculativeBench(SequenceBench[SpeculativeSession]):
    """As many tokens per step as the guesses were right, plus one; one sequence.

    Args:
        prepared: The model with its levers, `speculation` among them.
        work: Its `context` is ignored: the prompt decides.
        tokens_1L: The prompt.
        stream: Shows the text of the first measured sequence; None: no text is shown.
    """

    def __init__(
        self, prepared: PreparedModel, work: Workload, tokens_1L: Tensor, stream: FirstSequenceText | None = None
    ) -> None:
        session = SpeculativeSession(prepared, tokens_1L.shape[1] + work.new_tokens)
        super().__init__(prepared, work, tokens_1L, session, stream)
        self._profiled = session
        self._profiled_tokens: list[int] = []

    @property
    def context(self) -> int:
        return self._profiled.length + 1

    @property
    def most_profiled_steps(self) -> int | None:
        room = self.prepared.config.context_length - self._prompt_length
        return max(1, room // self._tokens_at_most)

    @property
    def _tokens_at_most(self) -> int:
        return self._session.most_drafts + 1

    def single(self) -> None:
        tokens_N = self._profiled.step(self._tokens_at_most)
        self._profiled_tokens.append(len(tokens_N))

    def before_profile(self, steps: int) -> None:
        """Prefill a session that has room for steps whose guesses are all right."""
        room = self.prepared.config.context_length
        capacity = min(room, self._prompt_length + steps * self._tokens_at_most)
        self._profiled = SpeculativeSession(self.prepared, capacity)
        self._profiled.prefill(self._tokens_BL)
        self._left = 0

    def produced(self, steps: int) -> list[int]:
        return self._profiled_tokens[-steps:]

    def _advance(self, reporter: StepReporter, most_steps: int, stream: FirstSequenceText | None) -> int:
        session, watch = self._session, self.watch
        waiting, done = _Waiting(), 0
        watch.start()
        while done < most_steps and self._left > 0:
            waiting.contexts.append(session.length + 1)
            tokens_N = session.step(self._left)
            watch.lap()
            done += 1
            self._left -= len(tokens_N)
            waiting.steps.append(tokens_N)
            waiting.drafted.append(session.drafted)
            if watch.due():
                self._report(reporter, waiting, stream)
                waiting = _Waiting()
                watch.start()
        self._report(reporter, waiting, stream)
        return done

    def _report(self, reporter: StepReporter, waiting: _Waiting, stream: FirstSequenceText | None) -> None:
        reporter.report(
            "decode",
            self.watch,
            tokens=[len(tokens_N) for tokens_N in waiting.steps],
            contexts=waiting.contexts,
            drafted=waiting.drafted,
        )
        if stream is not None and waiting.steps:
            stream.show(list(torch.cat(waiting.steps)[:, None]))
