"""What a pruning is: a lever that removes weights. Inference only: training would grow them again."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from gptscope.models.gpt import GPT
from gptscope.models.levers import INFERENCE_WORKLOADS, Lever, LeverContext

SEEN = "pruning_weights"
ZEROS = "pruning_zeros"


class Pruning(Lever):
    """One way to choose and remove weights."""

    group = "pruning"
    workloads = INFERENCE_WORKLOADS

    @abstractmethod
    def apply(self, model: GPT, context: LeverContext) -> None:
        """Remove weights from the textbook model, in place; fusions and quantization come after."""

    @abstractmethod
    def counters(self, model: GPT) -> dict[str, float]:
        """What is left of it in the model as it runs, for `evidence`."""


def block_linears(model: GPT) -> list[nn.Linear]:
    """The linear layers inside the blocks; embeddings and the output projection are never pruned."""
    return [module for module in model.blocks.modules() if isinstance(module, nn.Linear)]


def block_matrices(model: GPT) -> list[Tensor]:
    """The weights of the blocks as they are kept now, quantized or not; those that exist only packed are missing."""
    found: list[Tensor] = []
    for module in model.blocks.modules():
        if not hasattr(module, "in_features"):
            continue
        kept = (getattr(module, "weight", None), getattr(module, "stored", None))
        found += [tensor for tensor in kept if isinstance(tensor, Tensor) and tensor.dim() == 2]
    return found


def zero_counters(model: GPT) -> dict[str, float]:
    """How many weights of the blocks there are, and how many of them are zero."""
    matrices = block_matrices(model)
    zeros = sum(int((matrix == 0).sum()) for matrix in matrices)
    return {SEEN: float(sum(matrix.numel() for matrix in matrices)), ZEROS: float(zeros)}


def keep_largest(magnitudes: Tensor, keep: int) -> Tensor:
    """True for exactly the `keep` largest values; among equal ones the first stay."""
    flat = magnitudes.flatten().float()
    if keep >= flat.numel():
        return torch.ones_like(magnitudes, dtype=torch.bool)
    if keep == 0:
        return torch.zeros_like(magnitudes, dtype=torch.bool)
    threshold = flat.kthvalue(flat.numel() - keep).values
    chosen = flat > threshold
    missing = keep - int(chosen.sum())
    if missing:
        chosen[(flat == threshold).nonzero().flatten()[:missing]] = True
    return chosen.view(magnitudes.shape)
