"""Floating point operations that a step needs: the numerator of MFU.

Formula (Kaplan et al. 2020, table 1; Chowdhery et al. 2022, appendix B; the rule of `torch.utils.flop_counter`): a
matrix product of M x K by K x N is 2 M K N operations. A layer has q, k, v, out, (gate,) up and down over B L rows, and
attention's two products, 2 x 2 B H L S C. Elementwise work, norms and softmax are not counted. A training step is three
forward passes: each product's backward pass is two products of the same size. Recomputation (activation checkpoints,
flash attention's backward pass) is not model work and not counted.
"""

from gptscope.profiling.metrics.model_ops import ModelShape, forward_operations
from gptscope.profiling.records import StepKind

BACKWARD_FACTOR = 2
"""Gradient of the input and gradient of the weight, one product each."""


def step_flops(shape: ModelShape, kind: StepKind, *, batch: int, context: int, kv_cache: str = "dynamic") -> int:
    """FLOPs of one step of the whole model.

    Args:
        shape: Of the model.
        kind: `train` (forward and backward over `context` tokens, logits everywhere), `prefill` (forward over
            `context` tokens, logits of the last), `decode` (one token per sequence attending to `context`).
        batch: Sequences.
        context: Tokens per sequence that take part, the new one included.
        kv_cache: `none` recomputes all `context` tokens for every new one; any other kind computes only the new one.
    """
    new = pass_length(kind, context, kv_cache)
    logits = context if kind == "train" else 1
    operations = forward_operations(shape, batch=batch, new=new, attended=context, logits=logits, cached=False)
    forward = sum(times * op.flops for times, op in operations)
    return forward * (1 + BACKWARD_FACTOR) if kind == "train" else forward


def pass_length(kind: StepKind, context: int, kv_cache: str) -> int:
    """Tokens per sequence that go through the layers in one step."""
    return 1 if kind == "decode" and kv_cache != "none" else context
