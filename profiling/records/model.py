"""What a model is, and how its loading, compiling, inspection or download went."""

import msgspec

from gptscope.profiling.records.message import Message


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a loaded or inspected model is. Sizes in bytes are at the variant's precision."""

    name: str
    source: str
    """`bundled`, `preset`, `hf_folder`, `hf_hub`, `gguf`, `nanogpt`."""
    family: str
    n_layer: int
    d_model: int
    n_head: int
    n_kv_head: int
    d_head: int
    d_ff: int
    vocab_size: int
    context_length: int
    parameters: int
    weight_bytes: int
    kv_bytes_per_token: float
    random_weights: bool
    """True for presets: good for speed, meaningless for quality."""
    has_tokenizer: bool
    gated_mlp: bool = False
    tied_embeddings: bool = True
    learned_positions: bool = False
    notes: tuple[str, ...] = ()
    fetch_bytes: int | None = None
    """What must be downloaded before it can be loaded; None when it is on this machine."""
    activation_bytes: float | None = None
    """Bytes of one activation as the variant computes; None: as its precision's name says."""
    read_weight_bytes: int | None = None
    """Bytes of the weights that every step reads, look-up tables left out; None: they follow from `weight_bytes`."""


class ModelLoaded(Message, frozen=True):
    """Weights are in memory and the levers are applied."""

    run_id: str
    model: ModelInfo
    fusions: tuple[str, ...]
    """Fusions really applied (`all` resolved)."""
    skipped: dict[str, str]
    """Fusions left out of `all` -> reason."""
    load_s: float
    start_s: float
    """Seconds from the worker process's start until it could load (imports)."""


class Compiled(Message, frozen=True):
    """torch.compile has finished its first calls."""

    run_id: str
    compile_s: float
    graph_breaks: int
    regions: int


class ModelInspected(Message, frozen=True):
    """Answer to `InspectModel`: what a source holds, without loading its weights."""

    model: ModelInfo
    estimated_bytes: dict[str, int]
    """Workload -> estimated memory in FP32 at batch 1."""


class ModelSaved(Message, frozen=True):
    """Answer to `SaveModel`. The folder was loaded again and holds what was to be saved."""

    model: str
    folder: str
    bytes: int
    """Of the weights' file."""
    parameters_before: int
    parameters: int
    zeros: float
    """Share of the weights inside the layers that are zero, 0 to 1."""
    notes: tuple[str, ...] = ()
    """What a person should know of the pruning."""


class ModelFetched(Message, frozen=True):
    """Answer to `FetchModel`."""

    model: str
    path: str
    bytes: int
    sha256: str | None = None
