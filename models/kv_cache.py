"""Where generation keeps the keys and values of earlier tokens: nowhere, in growing tensors, or in fixed buffers."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.fixed_buffers import FixedBuffers
from gptscope.models.int8_cache import Int8Cache, int8_cache_bytes
from gptscope.models.levers import INFERENCE_WORKLOADS, Evidence, Lever, LeverContext, ProfileFacts


class DynamicLayer:
    """One layer's growing keys and values."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def append(self, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Concatenate; return all keys and values, oldest first."""
        if self.keys is not None and self.values is not None:
            k_BKLC = torch.cat((self.keys, k_BKLC), dim=2)
            v_BKLC = torch.cat((self.values, v_BKLC), dim=2)
        self.keys, self.values = k_BKLC, v_BKLC
        return k_BKLC, v_BKLC


class DynamicCache:
    """Textbook cache: every step concatenates, so every step allocates and copies all earlier keys and values.

    The copying is the honest price of the simplest form (it is also what transformers' `DynamicCache` pays); the
    static cache is the cure.
    """

    def __init__(self, layers: Sequence[DynamicLayer]) -> None:
        self.layers = list(layers)
        self.length = 0
        self.allocations = 0
        """Tensors allocated for storage so far."""

    def update(self, layer: int, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Append one layer's new keys and values; return all of them, oldest first."""
        return self.layers[layer].append(k_BKLC, v_BKLC)

    def advance(self, tokens: int) -> None:
        """Count `tokens` as stored."""
        self.length += tokens
        self.allocations += 2 * len(self.layers)

    def part(self, first: int, count: int) -> "DynamicCache":
        """The same storage seen by `count` layers from `first` on, which are numbered from 0 there."""
        part = DynamicCache(self.layers[first : first + count])
        part.length = self.length
        return part

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        self.length = length
        for layer in self.layers:
            if layer.keys is not None and layer.values is not None:
                layer.keys, layer.values = layer.keys.narrow(2, 0, length), layer.values.narrow(2, 0, length)

    def reset(self) -> None:
        """Forget everything."""
        self.length = 0
        self.layers = [DynamicLayer() for _ in self.layers]

    @property
    def storage_bytes(self) -> int:
        """Bytes that the stored keys and values occupy."""
        stored = [tensor for layer in self.layers for tensor in (layer.keys, layer.values) if tensor is not None]
        return sum(tensor.nbytes for tensor in stored)


class StaticLayer(NamedTuple):
    """One layer's fixed buffers, `[B, K, capacity + 1, C]`."""

    keys: Tensor
    values: Tensor


class StaticCache(FixedBuffers[StaticLayer]):
    """One buffer per layer, allocated once for `capacity` tokens; reading returns views, nothing is copied again."""

    title = "a static"

    def update(self, layer: int, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Write one layer's new keys and values behind the stored ones; return views of all of them.

        Raises:
            ValueError: The buffer is full.
        """
        added = k_BKLC.shape[2]
        start, end = self.room_for(added)
        keys, values = self.layers[layer]
        keys.narrow(2, start, added).copy_(k_BKLC)
        values.narrow(2, start, added).copy_(v_BKLC)
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)


AnyCache = DynamicCache | StaticCache | Int8Cache


class KVCacheKind(Lever):
    """One way of remembering, or not, what earlier tokens computed."""

    group = "kv_cache"
    workloads: ClassVar = INFERENCE_WORKLOADS

    @abstractmethod
    def make(
        self, config: GPTConfig, batch: int, capacity: int, dtype: torch.dtype, device: torch.device
    ) -> AnyCache | None:
        """A fresh cache for `batch` sequences of at most `capacity` tokens; None when nothing is kept."""

    def value_bytes(self, config: GPTConfig, activation_bytes: float) -> float:
        """Bytes of one stored key or value feature; `activation_bytes` is the size of one as the model computes it."""
        del config
        return activation_bytes

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        if facts.workload == "prefill":
            return self.cannot_tell("One prefill reads no cached tokens; decode shows what the cache does.")
        per_step = facts.counters.get("tokens_per_forward")
        if per_step is None:
            return self.cannot_tell("No decode steps were counted, so the cache cannot be seen.")
        return self.decode_evidence(per_step, facts)

    @abstractmethod
    def decode_evidence(self, per_step: float, facts: ProfileFacts) -> Evidence:
        """Judge from the tokens that each decode step put through the model, per sequence."""


class NoCache(KVCacheKind):
    """Compute everything again for every token."""

    name = "none"
    title = "no KV cache"
    summary = "Every new token recomputes the whole text: the cost grows with the text, which shows what a cache saves."

    def make(
        self, config: GPTConfig, batch: int, capacity: int, dtype: torch.dtype, device: torch.device
    ) -> AnyCache | None:
        return None

    def decode_evidence(self, per_step: float, facts: ProfileFacts) -> Evidence:
        del facts
        sentence = f"Each decode step put {per_step:.0f} tokens per sequence through the model."
        return self.seen(per_step > 1, sentence)


class Dynamic(KVCacheKind):
    """Grow by concatenation."""

    name = "dynamic"
    title = "dynamic KV cache"
    summary = "Keeps keys and values and appends by concatenation: needs no size in advance, but copies at every step."

    def make(
        self, config: GPTConfig, batch: int, capacity: int, dtype: torch.dtype, device: torch.device
    ) -> AnyCache | None:
        return DynamicCache([DynamicLayer() for _ in range(config.n_layer)])

    def decode_evidence(self, per_step: float, facts: ProfileFacts) -> Evidence:
        grown = facts.counters.get("kv_cache_allocations_per_step", 0.0)
        sentence = f"Each decode step put {per_step:.0f} token per sequence through the model"
        if per_step != 1:
            return self.not_shown(f"Each decode step put {per_step:.1f} tokens per sequence through the model, not 1.")
        return self.seen(grown > 0, f"{sentence} and allocated {grown:.0f} grown cache tensors.")


class Static(KVCacheKind):
    """Allocate once."""

    name = "static"
    title = "static KV cache"
    summary = "Allocates room for the whole text at the start and writes in place: no copying, fixed memory."

    def make(
        self, config: GPTConfig, batch: int, capacity: int, dtype: torch.dtype, device: torch.device
    ) -> AnyCache | None:
        shape = (batch, config.n_kv_head, capacity + 1, config.d_head)
        return StaticCache(
            [
                StaticLayer(
                    torch.zeros(shape, dtype=dtype, device=device), torch.zeros(shape, dtype=dtype, device=device)
                )
                for _ in range(config.n_layer)
            ]
        )

    def decode_evidence(self, per_step: float, facts: ProfileFacts) -> Evidence:
        if per_step != 1:
            return self.not_shown(f"Each decode step put {per_step:.1f} tokens per sequence through the model, not 1.")
        grown = facts.counters.get("kv_cache_allocations_per_step", 0.0)
        if grown > 0:
            return self.not_shown(
                f"Each decode step allocated {grown:.0f} cache tensors; a static cache allocates none."
            )
        megabytes = facts.counters.get("kv_cache_bytes", 0.0) / 1e6
        return self.shown(f"Decode steps wrote in place into {megabytes:.1f} MB allocated once, one token per step.")


class Int8(KVCacheKind):
    """Allocate once, a byte per feature."""

    name = "int8"
    title = "INT8 KV cache"
    summary = (
        "A static cache that keeps keys and values as INT8 with a scale per token and head: half the memory of 16-bit "
        "formats. On a CPU it costs time, because attention reads real numbers."
    )

    def make(
        self, config: GPTConfig, batch: int, capacity: int, dtype: torch.dtype, device: torch.device
    ) -> AnyCache | None:
        return Int8Cache.allocate(config, batch, capacity, device)

    def value_bytes(self, config: GPTConfig, activation_bytes: float) -> float:
        return int8_cache_bytes(config)

    def decode_evidence(self, per_step: float, facts: ProfileFacts) -> Evidence:
        if per_step != 1:
            return self.not_shown(f"Each decode step put {per_step:.1f} tokens per sequence through the model, not 1.")
        size = facts.counters.get("kv_cache_value_bytes", 0.0)
        if not 0 < size < 2:
            return self.not_shown(f"The KV cache keeps {size:.2f} bytes per value; INT8 has little more than 1.")
        megabytes = facts.counters.get("kv_cache_bytes", 0.0) / 1e6
        return self.shown(f"Decode steps wrote into {megabytes:.1f} MB, {size:.2f} bytes per value with its scale.")


KV_CACHES: dict[str, KVCacheKind] = {"none": NoCache(), "dynamic": Dynamic(), "static": Static(), "int8": Int8()}
"""Name -> kind, in the order of menus."""
