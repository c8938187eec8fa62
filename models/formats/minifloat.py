"""Floating point with few bits: E4M3 and E5M2 (OCP 8-bit floating point, 2023), E2M1 and E8M0 (OCP microscaling, 2023).

A code has a sign, then exponent bits E, then mantissa bits M. Its value is (-1)^sign · 2^(E - bias) · (1 + M / 2^m);
with E = 0 it is (-1)^sign · 2^(1 - bias) · M / 2^m.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_EXPONENT = 0x7F800000
"""The exponent bits of an FP32 number."""
FP32_MOST = torch.finfo(torch.float32).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Minifloat:
    """One signed format."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: float
    """Largest finite value; larger ones are rounded to it (saturation), infinity too."""
    dtype: torch.dtype | None = None
    """torch's type of the same format, whose casts are quick; None: it has none that can be cast to."""

    @property
    def bits(self) -> int:
        """Bits of one code."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def least_exponent(self) -> int:
        """Exponent of the smallest normal values, and of all below."""
        return 1 - self.bias

    def decode(self, code: int) -> float:
        """The value of one code, by the definition; NaN and infinity where the format has them."""
        sign = -1.0 if code >> (self.bits - 1) else 1.0
        exponent = (code >> self.mantissa_bits) & ((1 << self.exponent_bits) - 1)
        mantissa = code & ((1 << self.mantissa_bits) - 1)
        fraction = mantissa / (1 << self.mantissa_bits)
        if exponent == 0:
            return sign * math.ldexp(fraction, self.least_exponent)
        value = math.ldexp(1.0 + fraction, exponent - self.bias)
        if value <= self.largest:
            return sign * value
        # E5M2 ends as IEEE formats do; E4M3 spends a single code on "not a number" and has no infinity.
        return sign * math.inf if mantissa == 0 else math.nan

    def round(self, x: Tensor) -> Tensor:
        """The nearest values of this format, in FP32; ties go to the even mantissa, NaN stays."""
        x = x.float().clamp(-self.largest, self.largest)
        if self.dtype is not None:
            return x.to(self.dtype).float()
        return self.round_by_definition(x)

    def round_by_definition(self, x: Tensor) -> Tensor:
        """`round` without torch's own type, step by step; takes FP32 between ±`largest`."""
        step = self.step(x)
        return torch.round(x / step) * step  # both exact: a step is a power of two

    def step(self, x: Tensor) -> Tensor:
        """Distance between the two values of this format around each of `x` (FP32, between ±`largest`)."""
        power = (x.view(torch.int32) & _EXPONENT).view(torch.float32)  # FP32's own exponent: 2^floor(log2 |x|)
        return power.clamp(min=2.0**self.least_exponent) * 2.0**-self.mantissa_bits


E4M3 = Minifloat(
    name="E4M3", exponent_bits=4, mantissa_bits=3, bias=7, largest=448.0, dtype=torch.float8_e4m3fn
)  # fmt: skip
"""8 bits with the finer steps: for activations and weights."""
E5M2 = Minifloat(name="E5M2", exponent_bits=5, mantissa_bits=2, bias=15, largest=57344.0, dtype=torch.float8_e5m2)
"""8 bits with the wider range: for gradients."""
E2M1 = Minifloat(name="E2M1", exponent_bits=2, mantissa_bits=1, bias=1, largest=6.0)
"""4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives."""

E8M0_BIAS = 127
E8M0_NAN = 255


def e8m0_decode(code: int) -> float:
    """The value of an E8M0 code: a power of two, without sign and without zero."""
    return math.nan if code == E8M0_NAN else math.ldexp(1.0, code - E8M0_BIAS)


def e8m0_round(x: Tensor, *, up: bool) -> Tensor:
    """Positive values as powers of two from 2^-127 to 2^127: the next one above (`up`) or below."""
    mantissa, exponent = torch.frexp(x.float())
    # frexp gives 0.5 <= mantissa < 1, so below is 2^(exponent - 1), and above it too when x is a power of two
    power = exponent - 1
    if up:
        power = power + (mantissa != 0.5).to(power.dtype)
    return torch.ldexp(torch.ones_like(x), power.clamp(-E8M0_BIAS, E8M0_BIAS))
