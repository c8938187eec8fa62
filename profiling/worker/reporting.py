"""From stopwatch readings to `StepSamples`, and the durations that warm-up and profiler overhead look at."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from gptscope.profiling.records import StepKind, StepSamples
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.timing import Stopwatch

Phase = Literal["warmup", "measure", "profile"]
UNMEASURED_SLICE = -1
_KEPT_DURATIONS = 1 << 16


class StepReporter:
    """Sends the steps of one slice, of the warm-up or of the profiled steps.

    Args:
        output: Where samples go.
        run_id: Whose steps they are.
        phase: What the steps are for.
        number: The slice; `UNMEASURED_SLICE` outside slices.
    """

    def __init__(
        self,
        output: Output,
        run_id: str,
        phase: Literal["warmup", "measure", "profile"],
        number: int = UNMEASURED_SLICE,
    ) -> None:
        self._output, self._run_id = output, run_id
        self.phase, self._number = phase, number
        self.durations_ns: dict[StepKind, list[int]] = {"train": [], "prefill": [], "decode": []}
        """Durations of each kind of step, the first ones."""
        self.steps = 0
        """Steps reported so far, of all kinds."""

    def report(
        self,
        kind: StepKind,
        watch: Stopwatch,
        *,
        tokens: Sequence[int],
        contexts: Sequence[int],
        losses: Sequence[Tensor] = (),
        drafted: Sequence[int] = (),
    ) -> None:
        """Take the stopwatch's readings and send them.

        Args:
            kind: Of all these steps.
            watch: Its readings are forgotten here.
            tokens: Of all sequences together, for each step.
            contexts: Tokens attended to, for each step.
            losses: Of each training step.
            drafted: Tokens guessed, for each step of speculative decoding.
        """
        laps = watch.take()
        count = len(laps.duration_ns)
        assert count == len(contexts), "one context for each step"
        assert count == len(tokens), "one number of tokens for each step"
        assert not losses or count == len(losses), "one loss for each step"
        if count == 0:
            return
        self._output.emit(
            StepSamples(
                run_id=self._run_id,
                slice=self._number,
                phase=self.phase,
                kind=kind,
                start_ns=tuple(laps.start_ns),
                duration_ns=tuple(laps.duration_ns),
                tokens=tuple(tokens),
                context=tuple(contexts),
                loss=tuple(torch.stack(list(losses)).tolist()) if losses else (),
                drafted=tuple(drafted),
            )
        )
        self.steps += count
        kept = self.durations_ns[kind]
        kept += laps.duration_ns[: _KEPT_DURATIONS - len(kept)]
