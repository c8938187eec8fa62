"""Rotary settings of a `config.json`, in the old spelling (`rope_theta`, `rope_scaling`) and transformers 5's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gptscope.models.config import RopeScaling
from gptscope.models.loaders.settings import Settings


@dataclass(frozen=True, slots=True)
class RopeSettings:
    """Base, rotated share of each head, and stretching."""

    theta: float
    partial: float
    scaling: RopeScaling | None


def read_rope(
    settings: Settings, context_length: int, *, theta_field: str = "rope_theta", partial: float = 1.0
) -> RopeSettings:
    """Read the rotary settings the way transformers 5 reads them (`modeling_rope_utils.py`).

    Args:
        settings: The model's `config.json`.
        context_length: Default for llama3's original context.
        theta_field: Name of the base outside `rope_parameters` (GPT-NeoX: `rotary_emb_base`).
        partial: Rotated share when `rope_parameters` does not say.

    Raises:
        ModelError: A kind of scaling that the decoder lacks, or impossible numbers.
    """
    field = "rope_scaling" if settings.optional("rope_scaling") else "rope_parameters"
    raw = settings.optional(field) or {}
    if not isinstance(raw, Mapping):
        raise settings.error(field, f"must be an object, but it is {raw!r}")
    if any(isinstance(value, Mapping) for value in raw.values()):
        raise settings.error(field, "differs between layers, which gptscope does not support")
    inner = Settings(settings.path, raw)
    theta = inner.number("rope_theta", settings.number(theta_field, 10_000.0))
    share = inner.number("partial_rotary_factor", partial)
    if not theta > 0:
        raise settings.error("rope_theta", f"must be above 0, but it is {theta}")
    return RopeSettings(theta, share, _scaling(settings, field, inner, context_length))


def _scaling(settings: Settings, field: str, inner: Settings, context_length: int) -> RopeScaling | None:
    kind = inner.optional("rope_type") or inner.optional("type") or "default"
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling(kind="linear", factor=_factor(settings, field, inner))
    if kind == "llama3":
        low, high = inner.number("low_freq_factor"), inner.number("high_freq_factor")
        if not high > low > 0:
            raise settings.error(field, f"needs high_freq_factor ({high}) above low_freq_factor ({low}) above 0")
        original: Any = settings.optional("original_max_position_embeddings")
        if original is None:
            original = inner.integer("original_max_position_embeddings", context_length)
        return RopeScaling(
            kind="llama3",
            factor=_factor(settings, field, inner),
            low_freq_factor=low,
            high_freq_factor=high,
            original_context=original,
        )
    raise settings.error(
        field, f"has the rotary scaling {kind!r}, which gptscope does not support (it knows default, linear, llama3)"
    )


def _factor(settings: Settings, field: str, inner: Settings) -> float:
    factor = inner.number("factor")
    if not factor > 0:
        raise settings.error(field, f"needs a factor above 0, but it is {factor}")
    return factor
