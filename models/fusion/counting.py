"""Evidence by counting: how many products with weights one step makes, against what the textbook form makes."""

import re

from gptscope.models.config import GPTConfig
from gptscope.models.gemm import BATCHED_OPS, is_linear
from gptscope.models.levers import Evidence, Lever, LeverContext, ProfileFacts


def linears_per_step(config: GPTConfig, fusions: frozenset[str], *, training: bool) -> int:
    """Products with weights that one forward pass (training: forward and backward) makes.

    A textbook layer has q, k, v, out, up, down and, with SwiGLU, gate. `qkv` saves two of them, `mlp` saves the gate.
    The backward pass makes two products per forward product: one for the input's gradient, one for the weight's.
    """
    gated = config.mlp == "swiglu"
    per_layer = (2 if "qkv" in fusions else 4) + (3 if gated and "mlp" not in fusions else 2)
    return (config.n_layer * per_layer + 1) * (3 if training else 1)


def linear_count_evidence(
    lever: Lever, facts: ProfileFacts, context: LeverContext, module: str, textbook: int, fused: int
) -> Evidence:
    """Judge a lever that merges products with weights by how many are left.

    Args:
        lever: The lever.
        facts: The profile. Where it names modules, only the products of `module` are counted (those of its backward
            pass too); else all products of a step are.
        context: The levers and the model's shape.
        module: The module that the lever replaces, e.g. `qkv`.
        textbook: Products that the textbook form of that module makes per layer.
        fused: Those that the fused form makes.
    """
    config = context.config
    if config is None:
        return lever.cannot_tell("Without the model's shape the expected number of matrix products is unknown.")
    inside = re.compile(rf"\.{module}(\.|$)")
    found = facts.calls_per_step(lambda kernel: is_linear(kernel) and inside.search(kernel.module) is not None)
    if found:
        where = f" in the {module} modules"
        passes = config.n_layer * (3 if context.training else 1)
        return _judge(lever, found, passes * fused, passes * textbook, where)
    all_fused = linears_per_step(config, context.fusions | {lever.name}, training=context.training)
    all_textbook = linears_per_step(config, context.fusions - {lever.name}, training=context.training)
    found = facts.calls_per_step(is_linear)
    if facts.device == "cuda" and "attention" not in context.fusions:
        # CUDA kernels' names do not tell textbook attention's two products per layer from the others
        found -= 2 * config.n_layer * (3 if context.training else 1)
    if found < all_fused / 2:
        return lever.cannot_tell(f"The profile shows {found:.0f} weight products per step, too few to judge by.")
    return _judge(lever, found, all_fused, all_textbook, "")


def _judge(lever: Lever, found: float, fused: int, textbook: int, where: str) -> Evidence:
    sentence = f"{found:.0f} weight products per step{where}; textbook {textbook}, fused {fused}."
    return lever.seen(abs(found - fused) < abs(found - textbook), sentence)


def batched_products_per_step(facts: ProfileFacts) -> float:
    """Products of activations with each other per step, the mark of textbook attention (CPU operators)."""
    return facts.calls_per_step(lambda kernel: kernel.name in BATCHED_OPS)
