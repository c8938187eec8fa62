"""Precision recipes: one file each, listed here."""

from gptscope.models.precision.bf16 import Bf16
from gptscope.models.precision.fp8_current import Fp8Current
from gptscope.models.precision.fp8_delayed import Fp8Delayed
from gptscope.models.precision.fp8_rowwise import Fp8Rowwise
from gptscope.models.precision.fp16 import Fp16
from gptscope.models.precision.fp32 import Fp32
from gptscope.models.precision.int8_dynamic import Int8Dynamic
from gptscope.models.precision.int8_smoothquant import Int8SmoothQuant
from gptscope.models.precision.int8_static import Int8Static
from gptscope.models.precision.int8_weight_only import Int8WeightOnly
from gptscope.models.precision.mxfp8 import MxFp8
from gptscope.models.precision.nvfp4 import NvFp4
from gptscope.models.precision.recipe import PrecisionRecipe
from gptscope.models.precision.tf32 import Tf32

RECIPES: dict[str, PrecisionRecipe] = {
    "fp32": Fp32(),
    "tf32": Tf32(),
    "bf16": Bf16(),
    "fp16": Fp16(),
    "int8-weight-only": Int8WeightOnly(),
    "int8-dynamic": Int8Dynamic(),
    "int8-static": Int8Static(),
    "int8-smoothquant": Int8SmoothQuant(),
    "fp8-delayed": Fp8Delayed(),
    "fp8-current": Fp8Current(),
    "fp8-rowwise": Fp8Rowwise(),
    "mxfp8": MxFp8(),
    "nvfp4": NvFp4(),
}
"""Name -> recipe, in the order of menus."""
