"""INT8 weights, BF16 activations."""

import torch
from torch import nn

from gptscope.models.levers import Evidence, LeverContext, OptionValue, ProfileFacts
from gptscope.models.precision.int8_options import read_settings
from gptscope.models.precision.int8_recipe import Int8Recipe, limits_for
from gptscope.models.precision.recipe import PROFILER_DTYPE
from gptscope.models.quantization.layers import Int8Weight, Int8WeightOnlyLinear
from gptscope.models.quantization.ranges_file import Ranges


class Int8WeightOnly(Int8Recipe):
    """Decoding reads a quarter of FP32's weight bytes; activations are not rounded to INT8."""

    name = "int8-weight-only"
    title = "INT8 weight-only"
    summary = (
        "Weights as INT8 with a scale per channel, activations in BF16: decoding reads a quarter of FP32's bytes, and "
        "the output hardly changes. Prompts are computed in BF16."
    )
    products = frozenset({"aten::_weight_int8pack_mm"})

    def make_layer(
        self,
        path: str,
        linear: nn.Linear,
        values: dict[str, OptionValue],
        ranges: Ranges | None,
        dtype: torch.dtype,
    ) -> Int8Weight:
        del path, ranges
        limit_N1 = limits_for(linear, read_settings(values))
        return Int8WeightOnlyLinear(linear.weight.detach(), limit_N1, linear.bias, dtype)

    def converted_per_step(self, facts: ProfileFacts, context: LeverContext) -> float:
        types = (PROFILER_DTYPE[torch.bfloat16], "signed char")
        found = facts.calls_per_step(lambda kernel: kernel.name == "aten::copy_" and kernel.dtypes[:2] == types)
        by_cache = 2 * facts.n_layer if context.kv_cache == "int8" else 0  # it converts what it reads, too
        return max(0.0, found - by_cache)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        found = super().evidence(facts, context)
        packed = facts.calls_per_step(lambda kernel: kernel.name in self.products)
        if not found.in_effect and not packed and "compile" in context.fusions:
            return self.cannot_tell(
                "The compiler merges the conversion of INT8 weights into other kernels, so it cannot be told apart."
            )
        return found
