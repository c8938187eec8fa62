"""2:4 sparsity: of every four neighbouring weights the two smallest become zero (Mishra et al. 2021)."""

import torch
from torch import Tensor

from gptscope.models.compression.pruning import Pruning, block_linears, block_matrices
from gptscope.models.gpt import GPT
from gptscope.models.levers import Evidence, LeverContext, ProfileFacts

_GROUPS, _SPARSE = "pruning_groups_of_four", "pruning_groups_with_two_zeros"
_GROUP = 4


class TwoFour(Pruning):
    """The pattern that NVIDIA's sparse tensor cores take."""

    name = "2:4"
    title = "2:4 sparsity"
    summary = (
        "Of every four neighbouring weights the two smallest become zero. NVIDIA's sparse tensor cores (Ampere and "
        "newer) multiply this pattern up to twice as fast; here it is a mask, which shows what it does to the output."
    )

    def warning(self, context: LeverContext) -> str | None:
        del context
        return "The 2:4 pattern is a mask here: only CUDA's sparse tensor cores gain speed from it."

    def apply(self, model: GPT, context: LeverContext) -> None:
        del context
        with torch.no_grad():
            for linear in block_linears(model):
                linear.weight.mul_(two_four_mask(linear.weight.detach()))

    def counters(self, model: GPT) -> dict[str, float]:
        groups = [_groups(matrix) for matrix in block_matrices(model)]
        sparse = sum(int(((group == 0).sum(-1) >= _GROUP // 2).sum()) for group in groups)
        return {_GROUPS: float(sum(group.shape[0] * group.shape[1] for group in groups)), _SPARSE: float(sparse)}

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        groups = facts.counters.get(_GROUPS, 0.0)
        if not groups:
            return self.cannot_tell("The weights exist only in a packed form, in which zeros cannot be counted.")
        share = facts.counters.get(_SPARSE, 0.0) / groups
        sentence = f"{share:.1%} of the {groups:,.0f} groups of four weights have two zeros"
        if share < 1.0:
            return self.not_shown(f"Only {sentence}.")
        return self.shown(f"{sentence}; the kernels are dense ones, so no speedup here.")


def two_four_mask(weight_OI: Tensor) -> Tensor:
    """True for the two largest of every four neighbours along the input; a rest of less than four stays whole."""
    mask = torch.ones_like(weight_OI, dtype=torch.bool)
    groups = _groups(weight_OI.abs())
    largest = groups.topk(_GROUP // 2, dim=-1).indices
    chosen = torch.zeros_like(groups, dtype=torch.bool).scatter_(-1, largest, value=True)
    mask[:, : chosen.shape[1] * _GROUP] = chosen.flatten(1)
    return mask


def _groups(weight_OI: Tensor) -> Tensor:
    """`[O, groups, 4]`, without the rest."""
    whole = weight_OI.shape[1] // _GROUP * _GROUP
    return weight_OI[:, :whole].unflatten(1, (-1, _GROUP))
