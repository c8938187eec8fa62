"""How much memory a variant will need, from its shape alone, before anything is loaded.

Counts the large things (weights, gradients, optimizer state, KV cache, saved activations, the widest layer's
temporaries, logits); `tests/profiling/worker/test_estimate.py` compares the sum with measured peaks.
"""

from dataclasses import dataclass

from gptscope.models.config import GPTConfig
from gptscope.profiling.experiment import Workload

BASE_BYTES = 400_000_000
"""Python, torch, the tokenizer and their libraries."""
_FLOAT32 = 4


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes by purpose."""

    weights: int
    gradients: int
    optimizer: int
    kv_cache: int
    activations: int
    base: int = BASE_BYTES

    @property
    def total(self) -> int:
        """All together."""
        return self.weights + self.gradients + self.optimizer + self.kv_cache + self.activations + self.base

    def sentence(self) -> str:
        """The parts in GB, for messages: `weights 6.2 GB, gradients 6.2 GB, …`; parts below 50 MB are left out."""
        parts = {
            "weights": self.weights, "gradients": self.gradients, "optimizer state": self.optimizer,
            "KV cache": self.kv_cache, "activations": self.activations, "libraries": self.base,
        }  # fmt: skip
        return ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in parts.items() if size >= 50_000_000)


@dataclass(frozen=True, slots=True)
class LeverSizes:
    """What the levers change about memory."""

    bytes_per_value: float
    """Of a weight, at the widest moment of the preparation: 4 for FP32, 2 for 16-bit formats."""
    fused_attention: bool
    """No L x L matrix of scores is kept."""
    kv_cache: str
    activation_bytes: float | None = None
    """Of a value between layers; None: as of a weight."""
    kv_bytes: float | None = None
    """Of one stored key or value feature; None: as of an activation."""
    draft: GPTConfig | None = None
    """Shape of a smaller model that guesses."""

    @property
    def activation(self) -> float:
        """Bytes of a value between layers."""
        return self.bytes_per_value if self.activation_bytes is None else self.activation_bytes


def estimate_memory(config: GPTConfig, work: Workload, levers: LeverSizes) -> MemoryEstimate:
    """Estimate the peak memory of running one variant.

    Args:
        config: The model's shape.
        work: Batch, context and new tokens.
        levers: Number format, attention and KV cache.

    Returns:
        Bytes by purpose. Linear layers' small temporaries are not counted, so the truth is a little higher.
    """
    parameters = config.parameter_count
    if work.kind == "train":  # weights stay in FP32, and products run in the variant's format
        copies = 0.0 if levers.bytes_per_value == _FLOAT32 else levers.bytes_per_value
        return MemoryEstimate(
            weights=int(parameters * (_FLOAT32 + copies)),
            gradients=parameters * _FLOAT32,
            optimizer=parameters * 2 * _FLOAT32,
            kv_cache=0,
            activations=int(_training_activations(config, work, levers)),
        )
    kv_bytes = levers.activation if levers.kv_bytes is None else levers.kv_bytes
    capacity = work.context + (work.new_tokens if work.kind in ("decode", "generate") else 0)
    cached = 0.0 if levers.kv_cache == "none" else config.kv_bytes_per_token(kv_bytes) * capacity
    read_at_once = capacity if levers.kv_cache == "none" else work.context
    if levers.draft is not None:
        parameters += levers.draft.parameter_count
        cached += levers.draft.kv_bytes_per_token(levers.activation) * capacity
    return MemoryEstimate(
        weights=int(parameters * levers.bytes_per_value),
        gradients=0,
        optimizer=0,
        kv_cache=int(cached * work.batch),
        activations=int(_inference_activations(config, work.batch, read_at_once, levers)),
    )


def _inference_activations(config: GPTConfig, batch: int, length: int, levers: LeverSizes) -> float:
    """Temporaries of the widest layer plus the residual stream and the last position's logits."""
    tokens, value = batch * length, levers.activation
    attention = tokens * (config.n_head + 2 * config.n_kv_head) * config.d_head * value
    if not levers.fused_attention:
        # at the widest point softmax's input and output live, both in FP32, and the original scores beside them
        attention += batch * config.n_head * length * length * (2 * _FLOAT32 + value)
    mlp = tokens * config.d_ff * value * (3 if config.mlp == "swiglu" else 4)
    stream = tokens * config.d_model * (value + 3 * _FLOAT32)  # norms work in FP32
    return max(attention, mlp) + stream + batch * config.vocab_size * (value + _FLOAT32)


def _training_activations(config: GPTConfig, work: Workload, levers: LeverSizes) -> float:
    """What the forward pass keeps for the backward pass, plus the logits' chain at its widest."""
    tokens, value = work.batch * work.context, levers.bytes_per_value
    norms = 2 * tokens * config.d_model * (3 * _FLOAT32 + value)
    heads = tokens * (2 * config.n_head + 2 * config.n_kv_head) * config.d_head * value
    scores = 0.0
    if not levers.fused_attention:
        cast = 0.0 if value == _FLOAT32 else value
        scores = work.batch * config.n_head * work.context**2 * (_FLOAT32 + cast)
    mlp = tokens * config.d_ff * value * (5 if config.mlp == "swiglu" else 7)
    layer = norms + heads + scores + mlp + tokens * config.d_model * value
    logits = tokens * config.vocab_size * (3 * _FLOAT32 + value)
    return config.n_layer * layer + logits
