"""Structured pruning: whole heads and whole MLP channels go, so the matrices really become smaller."""

import re
from dataclasses import replace

import torch
from torch import Tensor, nn

from gptscope.models.compression.pruning import Pruning, keep_largest
from gptscope.models.config import GPTConfig
from gptscope.models.gemm import is_linear
from gptscope.models.gpt import GPT, Attention, Block, GeluMLP, SeparateQKV, SwigluMLP
from gptscope.models.levers import Evidence, LeverContext, LeverOption, ProfileFacts

_HEADS, _KV_HEADS, _WIDTH = "pruned_heads", "pruned_kv_heads", "pruned_mlp_width"
_WIDTH_STEP = 16
"""MLP widths stay multiples of this, which kernels like."""


class Structured(Pruning):
    """Heads with their key/value groups, and MLP channels, the least important ones of each layer."""

    name = "structured"
    title = "structured pruning"
    summary = (
        "Removes whole attention heads (with their key/value group) and whole MLP channels, those with the smallest "
        "weights: matrices, KV cache and time really shrink, on every device."
    )
    options = (
        LeverOption(
            name="heads",
            title="share of the heads",
            kind="number",
            default=0.25,
            least=0.0,
            most=0.9,
            summary="Of the key/value groups of each layer, never more than asked; a group goes with all its heads.",
        ),
        LeverOption(
            name="mlp",
            title="share of the MLP channels",
            kind="number",
            default=0.25,
            least=0.0,
            most=0.9,
            summary="Of each layer; the width that is left is rounded up to a multiple of 16.",
        ),
    )

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.config is None:
            return None
        left = self._left(context, context.config)
        if (left.n_head, left.d_ff) != (context.config.n_head, context.config.d_ff):
            return None
        return (
            f"Nothing would be removed: this model has {context.config.n_kv_head} key/value groups and "
            f"{context.config.d_ff} MLP channels per layer, and the shares come to less than one group and 16 channels."
        )

    def warning(self, context: LeverContext) -> str | None:
        config = context.config
        if config is None:
            return None
        left = self._left(context, config)
        return (
            f"Each layer keeps {left.n_head} of {config.n_head} heads ({left.n_kv_head} of {config.n_kv_head} "
            f"key/value groups) and {left.d_ff} of {config.d_ff} MLP channels. "
            "Without training afterwards the output suffers."
        )

    def apply(self, model: GPT, context: LeverContext) -> None:
        left = self._left(context, model.config)
        with torch.no_grad():
            for block in model.blocks:
                assert isinstance(block, Block)
                if left.n_kv_head < model.config.n_kv_head:
                    _prune_heads(block.attn, model.config, left.n_kv_head)
                if left.d_ff < model.config.d_ff:
                    _prune_mlp(block.mlp, left.d_ff)
        model.config = left

    def counters(self, model: GPT) -> dict[str, float]:
        """Sizes of the layers as they are, which the config only claims."""
        shapes = {name: getattr(module, "in_features", None) for name, module in model.blocks.named_modules()}
        heads = {size // model.config.d_head for name, size in shapes.items() if name.endswith(".attn.out") and size}
        widths = {size for name, size in shapes.items() if name.endswith(".mlp.down") and size}
        counters = {_KV_HEADS: float(model.config.n_kv_head)}
        if len(heads) == 1:
            counters[_HEADS] = float(heads.pop())
        if len(widths) == 1:
            counters[_WIDTH] = float(widths.pop())
        return counters

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        config = context.config
        heads, width = facts.counters.get(_HEADS), facts.counters.get(_WIDTH)
        if config is None or heads is None or width is None:
            return self.cannot_tell("The sizes of the layers cannot be seen.")
        sentence = (
            f"{heads:.0f} of {config.n_head} heads and {width:.0f} of {config.d_ff} MLP channels are left in each layer"
        )
        if (heads, width) == (config.n_head, config.d_ff):
            return self.not_shown(f"All {sentence}.")
        calls = facts.calls_per_step(
            lambda kernel: is_linear(kernel) and kernel.module.endswith(".mlp.down") and bool(kernel.input_shapes)
        )
        small = facts.calls_per_step(
            lambda kernel: (
                is_linear(kernel)
                and kernel.module.endswith(".mlp.down")
                and str(round(width)) in re.findall(r"\d+", kernel.input_shapes)
            )
        )
        if calls and small < calls:
            return self.not_shown(f"{sentence}, but {calls - small:.0f} products per step have other sizes.")
        return self.shown(f"{sentence}; {small:.0f} products per step have that width." if calls else f"{sentence}.")

    def _left(self, context: LeverContext, config: GPTConfig) -> GPTConfig:
        """The model's shape afterwards."""
        settings = self.settings(context)
        groups = config.n_kv_head - min(int(float(settings["heads"]) * config.n_kv_head + 1e-9), config.n_kv_head - 1)
        width = config.d_ff - int(float(settings["mlp"]) * config.d_ff + 1e-9)
        width = min(config.d_ff, -(-width // _WIDTH_STEP) * _WIDTH_STEP)
        return replace(config, n_kv_head=groups, n_head=groups * (config.n_head // config.n_kv_head), d_ff=width)


def _prune_heads(attention: nn.Module, config: GPTConfig, keep: int) -> None:
    """Keep the groups that can add most to the stream: norm of the values' rows times that of the output's columns."""
    assert isinstance(attention, Attention)
    qkv = attention.qkv
    assert isinstance(qkv, SeparateQKV)
    per_group = config.n_head // config.n_kv_head * config.d_head
    values_K = qkv.v.weight.float().unflatten(0, (config.n_kv_head, -1)).flatten(1).norm(dim=1)
    outputs_K = attention.out.weight.float().unflatten(1, (config.n_kv_head, per_group)).norm(dim=(0, 2))
    kept = keep_largest(values_K * outputs_K, keep)
    queries, keys = kept.repeat_interleave(per_group), kept.repeat_interleave(config.d_head)
    qkv.q, qkv.k, qkv.v = _rows(qkv.q, queries), _rows(qkv.k, keys), _rows(qkv.v, keys)
    attention.out = _columns(attention.out, queries)


def _prune_mlp(mlp: nn.Module, keep: int) -> None:
    """Keep the channels that can add most: norms of what makes them times the norm of what reads them."""
    assert isinstance(mlp, SwigluMLP | GeluMLP)
    importance_F = mlp.down.weight.float().norm(dim=0) * mlp.up.weight.float().norm(dim=1)
    if isinstance(mlp, SwigluMLP):
        importance_F = importance_F * mlp.gate.weight.float().norm(dim=1)
    kept = keep_largest(importance_F, keep)
    if isinstance(mlp, SwigluMLP):
        mlp.gate = _rows(mlp.gate, kept)
    mlp.up, mlp.down = _rows(mlp.up, kept), _columns(mlp.down, kept)


def _rows(linear: nn.Linear, kept: Tensor) -> nn.Linear:
    """The layer with some of its outputs."""
    bias = None if linear.bias is None else linear.bias.detach()[kept]
    return _linear(linear.weight.detach()[kept], bias, linear.weight.requires_grad)


def _columns(linear: nn.Linear, kept: Tensor) -> nn.Linear:
    """The layer with some of its inputs."""
    bias = None if linear.bias is None else linear.bias.detach()
    return _linear(linear.weight.detach()[:, kept].contiguous(), bias, linear.weight.requires_grad)


def _linear(weight: Tensor, bias: Tensor | None, requires_grad: bool) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(weight, requires_grad)
    if bias is not None:
        linear.bias = nn.Parameter(bias, requires_grad)
    return linear
