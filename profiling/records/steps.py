"""What the measured steps took and produced."""

from typing import Literal

from gptscope.profiling.records.message import Message

StepKind = Literal["train", "prefill", "decode"]


class StepSamples(Message, frozen=True):
    """Consecutive steps of one kind, batched so that reporting costs nothing. Lists have equal lengths."""

    run_id: str
    slice: int
    """-1 during warm-up and profiling."""
    phase: Literal["warmup", "measure", "profile"]
    kind: StepKind
    start_ns: tuple[int, ...]
    """`time.perf_counter_ns` of the machine that runs the worker (one clock for all its processes)."""
    duration_ns: tuple[int, ...]
    tokens: tuple[int, ...]
    """Tokens that the step processed (train, prefill) or produced (decode), all sequences together."""
    context: tuple[int, ...] = ()
    """Tokens per sequence that the step attended to (decode), for the byte model."""
    loss: tuple[float, ...] = ()
    drafted: tuple[int, ...] = ()
    """Tokens guessed for the step to check, all sequences together (speculative decoding); of `tokens`, all but one
    per sequence are guesses that were accepted. Empty without speculation."""


class GeneratedText(Message, frozen=True):
    """Text as it is produced (first sequence of the batch)."""

    run_id: str
    text: str
    token_ids: tuple[int, ...]


class SliceDone(Message, frozen=True):
    """One slice of measured steps has ended."""

    run_id: str
    slice: int
    """Counts from 0; a repeated slice has the same number and a higher `attempt`."""
    attempt: int
    pair: int
    """Slices of different variants with the same pair number were measured next to each other."""
    seconds: float
    disturbed: str | None = None
    """Why this slice is not counted, e.g. `other processes used 38 % of a core`; None: undisturbed."""


class MemoryPeak(Message, frozen=True):
    """Peak memory of the worker; on CUDA also of the device allocator."""

    run_id: str
    process_bytes: int
    device_bytes: int | None = None
    kv_cache_bytes: int | None = None
