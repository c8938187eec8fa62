"""How far one tensor is from another: signal to quantization noise, cosine, KL divergence."""

import math

import torch
from torch import Tensor


def sqnr_db(exact: Tensor, rounded: Tensor) -> float | None:
    """10 log10 of the power of `exact` over the power of the difference; None when there is no difference.

    Broken values (NaN, infinity) in `rounded` give minus infinity's stand-in, None is kept for "equal".
    """
    exact, rounded = exact.double(), rounded.double()
    signal, noise = float(exact.square().sum()), float((exact - rounded).square().sum())
    if noise == 0.0:
        return None
    if not math.isfinite(noise):
        return BROKEN_DB
    return 10.0 * math.log10(max(signal, 1e-300) / noise)


BROKEN_DB = -300.0
"""Stands for an output that holds NaN or infinity."""


def mean_cosine(exact: Tensor, rounded: Tensor) -> float | None:
    """Mean over rows of the cosine of the angle between both; None when a value is NaN or infinite."""
    cosines = torch.nn.functional.cosine_similarity(exact.double(), rounded.double(), dim=-1)
    mean = float(cosines.mean())
    return mean if math.isfinite(mean) else None


def mean_kl(exact: Tensor, changed: Tensor) -> float | None:
    """Mean KL divergence over rows of log-probabilities, in nats; None when a value is NaN or infinite."""
    mean = float((exact.exp() * (exact - changed)).sum(-1).double().mean())
    return max(mean, 0.0) if math.isfinite(mean) else None


def centred(logits: Tensor) -> Tensor:
    """Logits without their row's mean, which changes no probability."""
    return logits - logits.mean(-1, keepdim=True)
