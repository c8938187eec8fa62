"""Commands from the engine to a worker, and what a worker answers to the engine only (never stored)."""

from gptscope.profiling.experiment import Experiment
from gptscope.profiling.records.message import Message


class LoadVariant(Message, frozen=True):
    """Load the model and apply the variant's levers; answered by `ModelLoaded`."""

    run_id: str
    experiment_id: str
    experiment: Experiment
    variant_index: int


class WarmUp(Message, frozen=True):
    """Run until steady (compile, autotune, caches); answered by `CommandDone`."""


class RunSlice(Message, frozen=True):
    """Measure `steps` steps; answered by `StepSamples`… and `CommandDone`."""

    slice: int
    steps: int


class RecordProfile(Message, frozen=True):
    """Profile a bounded number of steps; answered by `Profile`, `EvidenceReport`, `TraceChunk`…, `CommandDone`."""

    steps: int


class EvaluateWindow(Message, frozen=True):
    """Send the logits of one window of the evaluation text (`Logits` frames), then `CommandDone`."""

    window: int


class GreedyPrompt(Message, frozen=True):
    """Continue one evaluation prompt greedily; answered by `GreedyTokens`."""

    prompt: int
    new_tokens: int


class ForceTokens(Message, frozen=True):
    """Read an evaluation prompt and a given continuation of it; answered by `ForcedGaps`."""

    prompt: int
    new_tokens: int
    """As in the `GreedyPrompt` that the continuation answers."""
    token_ids: tuple[int, ...]


class MapLayers(Message, frozen=True):
    """Compare the variant with an FP32 copy of the model module by module; answered by `LayerErrors`."""

    baseline_run_id: str


class TrainSeed(Message, frozen=True):
    """Train the variant from its beginning with another seed; gives up the loaded model; answered by `SeedLosses`."""

    seed: int
    number: int
    """Which one of `seeds` it is, for people."""
    seeds: int


class Leave(Message, frozen=True):
    """End after saying `Bye`."""


class CommandDone(Message, frozen=True):
    """The worker has finished one command and waits."""

    command: str


class Logits(Message, frozen=True):
    """A piece (the payload, little-endian float32) of one window's next-token logits, row after row."""

    window: int
    windows: int
    """How many windows the evaluation text has."""
    vocab_size: int
    targets: tuple[int, ...]
    """The true next token of each row in this piece."""
    offset_row: int
    text_tokens: int = 0
    """Tokens of the whole text, also of what lies in no window."""


class GreedyTokens(Message, frozen=True):
    """One greedy continuation with the gap between best and second-best logit at every token."""

    prompt: int
    prompts: int
    """How many evaluation prompts there are."""
    token_ids: tuple[int, ...]
    margins: tuple[float, ...]
    """In logits; -1.0 where they hold NaN or infinity."""
    texts: tuple[str, ...]
    """Text of each token alone."""
    prompt_text: str = ""


class ForcedGaps(Message, frozen=True):
    """How far each token of a given continuation lies below the model's own choice."""

    prompt: int
    gaps: tuple[float, ...]
    """Best logit minus the given token's, at each token; -1.0 where they hold NaN or infinity."""
