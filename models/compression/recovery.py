"""Training after a pruning: what was removed stays removed, and which parts of the model suffered most."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gptscope.models.gpt import GPT
from gptscope.models.quantization.names import linears
from gptscope.models.quantization.sensitivity import Walk, replaced

_PIECES, _TOKENS = 2, 128
"""Text on which the parts are ranked: it is read once per part."""


Masks = Sequence[tuple[Tensor, Tensor]]
"""Weights, and True where one is kept."""


def zero_masks(original: GPT, pruned: GPT) -> Masks:
    """Of the layers in which single weights were pruned; layers that became smaller need no mask."""
    before = linears(original)
    return [
        (linear.weight, linear.weight.detach() != 0)
        for path, linear in linears(pruned).items()
        if linear.weight.shape == before[path].weight.shape and not torch.equal(linear.weight, before[path].weight)
    ]


def keep_zeros(masks: Masks) -> None:
    """Set what training has let grow back to zero."""
    with torch.no_grad():
        for weight, kept in masks:
            weight.mul_(kept)


def most_hurt(
    original: GPT, pruned: GPT, text_NL: Tensor, count: int, progress: Callable[[int, int, str], None]
) -> list[str]:
    """The layers of the parts whose pruning alone changes the prediction most, worst part first.

    Args:
        original: Unpruned; unchanged afterwards.
        pruned: The same model after the pruning.
        text_NL: Text of N pieces.
        count: Parts: single layers, or whole attentions and MLPs where these have become smaller.
        progress: Told how many parts are done.
    """
    with torch.inference_mode():
        walk = Walk(original, text_NL[:_PIECES, :_TOKENS])
        exact = walk.log_probabilities(0)
        divergence: dict[str, float] = {}
        parts = _parts(original, pruned)
        for number, (path, part) in enumerate(parts.items()):
            progress(number, len(parts), f"pruning {path} alone")
            with replaced(original, {path: part}):
                changed = walk.log_probabilities(int(path.split(".")[1]))
            divergence[path] = float((exact.exp() * (exact - changed)).sum(-1).mean())
        progress(len(parts), len(parts), "pruning single parts")
    worst = sorted(divergence, key=lambda path: divergence[path], reverse=True)[:count]
    return [name for part in worst for name in linears(pruned) if name == part or name.startswith(f"{part}.")]


def _parts(original: GPT, pruned: GPT) -> dict[str, nn.Module]:
    """What the pruning changed, in pieces that fit into the original's places."""
    after = linears(pruned)
    found: dict[str, nn.Module] = {}
    for path, linear in linears(original).items():
        if after[path].weight.shape != linear.weight.shape:
            part = ".".join(path.split(".")[:3])  # blocks.3.mlp
            found[part] = pruned.get_submodule(part)
        elif not torch.equal(after[path].weight, linear.weight):
            found[path] = pruned.get_submodule(path)
    return found
