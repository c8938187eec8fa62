"""Symmetric INT8: real numbers as integers from -127 to 127 times a scale (Jacob et al. 2018, without zero points).

-128 stays unused, so that a value and its negative have the same magnitude and no zero point is needed.
"""

import torch
from torch import Tensor

LARGEST = 127
_TINY = torch.finfo(torch.float32).tiny * LARGEST
"""Range of a tensor of zeros: its scale must not be zero."""


def scale_of(limit: Tensor) -> Tensor:
    """The step between two neighbouring integers when `limit`, the largest magnitude, becomes 127."""
    return limit.float().clamp(min=_TINY) / LARGEST


def to_int8(x: Tensor, scale: Tensor) -> Tensor:
    """Round to the nearest integer (ties to even); what lies outside the range becomes its end."""
    return (x / scale).round_().clamp_(-LARGEST, LARGEST).to(torch.int8)


def int8_product(x_RK: Tensor, weight_NK: Tensor) -> Tensor:
    """INT8 rows times the transpose of an INT8 matrix, exact in INT32, `[R, N]`."""
    return torch._int_mm(x_RK, weight_NK.t())  # noqa: SLF001  torch has no other name for it
