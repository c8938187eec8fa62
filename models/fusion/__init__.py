"""Fusions: one file each, listed here in the order in which they are applied."""

from gptscope.models.fusion.attention import FlashAttention
from gptscope.models.fusion.compile import Compile
from gptscope.models.fusion.lever import Fusion
from gptscope.models.fusion.mlp import Mlp
from gptscope.models.fusion.norm import Norm
from gptscope.models.fusion.optimizer import Optimizer
from gptscope.models.fusion.packed_linear import PackedLinear
from gptscope.models.fusion.qkv import Qkv

FUSIONS: dict[str, Fusion] = {
    "attention": FlashAttention(),
    "qkv": Qkv(),
    "mlp": Mlp(),
    "norm": Norm(),
    "optimizer": Optimizer(),
    "packed_linear": PackedLinear(),
    "compile": Compile(),
}
"""Name -> fusion, in the order of application: `packed_linear` packs what the earlier ones made."""
