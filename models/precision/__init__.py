"""Precision recipes: one file each, listed here."""

from gptscope.models.precision.bf16 import Bf16
from gptscope.models.precision.fp16 import Fp16
from gptscope.models.precision.fp32 import Fp32
from gptscope.models.precision.recipe import PrecisionRecipe
from gptscope.models.precision.tf32 import Tf32

RECIPES: dict[str, PrecisionRecipe] = {"fp32": Fp32(), "tf32": Tf32(), "bf16": Bf16(), "fp16": Fp16()}
"""Name -> recipe, in the order of menus."""
