"""A KV cache whose keys and values are INT8, each head of each token with a scale of its own."""

from typing import NamedTuple

import torch
from torch import Tensor

from gptscope.models.config import GPTConfig
from gptscope.models.fixed_buffers import FixedBuffers
from gptscope.models.quantization.integers import scale_of, to_int8

SCALE_BYTES = 4


class Int8Buffers(NamedTuple):
    """One layer's fixed buffers."""

    keys: Tensor
    """`[B, K, capacity + 1, C]`, INT8."""
    values: Tensor
    key_scales: Tensor
    """`[B, K, capacity + 1, 1]`, FP32."""
    value_scales: Tensor


class Int8Cache(FixedBuffers[Int8Buffers]):
    """Fixed buffers; what is read is the stored integers times their scales, in the model's type.

    A quarter of FP32's memory, half of 16-bit formats'. It saves no time here: torch's CPU attention takes no integers,
    so each step converts everything that it attends to.
    """

    title = "an INT8"

    @classmethod
    def allocate(cls, config: GPTConfig, batch: int, capacity: int, device: torch.device) -> "Int8Cache":
        """Buffers for `batch` sequences of at most `capacity` tokens."""
        heads = (batch, config.n_kv_head, capacity + 1)

        def numbers() -> Tensor:
            return torch.zeros((*heads, config.d_head), dtype=torch.int8, device=device)

        def scales() -> Tensor:
            return torch.ones((*heads, 1), device=device)

        return cls([Int8Buffers(numbers(), numbers(), scales(), scales()) for _ in range(config.n_layer)])

    def update(self, layer: int, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Write one layer's new keys and values behind the stored ones; return all of them as they were stored.

        Raises:
            ValueError: The buffer is full.
        """
        start, end = self.room_for(k_BKLC.shape[2])
        buffers = self.layers[layer]
        k_BKSC = _through(buffers.keys, buffers.key_scales, k_BKLC, start, end)
        v_BKSC = _through(buffers.values, buffers.value_scales, v_BKLC, start, end)
        return k_BKSC, v_BKSC


def _through(numbers: Tensor, scales: Tensor, new_BKLC: Tensor, start: int, end: int) -> Tensor:
    """Store new vectors; return everything up to `end` as real numbers."""
    fresh = new_BKLC.float()
    scale_BKL1 = scale_of(fresh.abs().amax(-1, keepdim=True))
    numbers.narrow(2, start, end - start).copy_(to_int8(fresh, scale_BKL1))
    scales.narrow(2, start, end - start).copy_(scale_BKL1)
    dtype = new_BKLC.dtype
    return numbers.narrow(2, 0, end).to(dtype).mul_(scales.narrow(2, 0, end).to(dtype))


def int8_cache_bytes(config: GPTConfig) -> float:
    """Bytes of one stored value with its share of the scale."""
    return 1.0 + SCALE_BYTES / config.d_head
