"""What all INT8 recipes share: which layers, in which order, and the proof that their products are INT8."""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.config import GPTConfig
from gptscope.models.fusion.counting import linears_per_step
from gptscope.models.fusion.kernel_choice import usual_rows
from gptscope.models.gemm import INT8_OPS, W8A8_OPS, is_linear
from gptscope.models.gpt import GPT
from gptscope.models.levers import (
    INFERENCE_WORKLOADS,
    Evidence,
    LeverContext,
    LeverError,
    LeverOption,
    OptionValue,
    ProfileFacts,
)
from gptscope.models.precision.int8_options import Int8Settings, int8_options, read_settings
from gptscope.models.precision.recipe import PrecisionRecipe
from gptscope.models.quantization.layers import Int8ActivationLinear, Int8Embedding, Int8Weight
from gptscope.models.quantization.names import linears, matching, set_module
from gptscope.models.quantization.observing import observe
from gptscope.models.quantization.ranges import weight_limits
from gptscope.models.quantization.ranges_file import Ranges, load_ranges
from gptscope.models.quantization.sensitivity import LayerError, layer_errors, worst

_RANKING_PIECES, _RANKING_TOKENS = 2, 128
"""Text on which layers are ranked: it is read once per layer."""


class Int8Recipe(PrecisionRecipe):
    """Matrices as INT8, everything else in a base format.

    Weights are loaded, smoothed and calibrated in FP32, so that INT8 rounds the true values and not rounded ones.
    """

    dtype = torch.float32
    bytes_per_value = 1.0
    preparing_bytes = 4.5
    workloads = INFERENCE_WORKLOADS
    options: ClassVar[tuple[LeverOption, ...]] = int8_options()
    reads_ranges = False
    """True when `make_layer` wants calibrated ranges of activations."""
    products: ClassVar[frozenset[str]] = W8A8_OPS
    """The operators that multiply INT8 numbers; of several the quicker one is chosen for each layer."""

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.machine.device != "cpu":
            return "The INT8 layers call the CPU's kernels; on a GPU take BF16 or FP16."
        return None

    def warning(self, context: LeverContext) -> str | None:
        native = {"avx512_bf16", "amx_bf16"}
        if self.compute_dtype(context) == torch.bfloat16 and not native & context.machine.cpu_features:
            return (
                "This CPU has no native BF16 instructions, so what is not INT8 runs emulated; set the option base to "
                "fp32."
            )
        return None

    def compute_dtype(self, context: LeverContext) -> torch.dtype:
        return read_settings(self.settings(context)).base

    def needs_calibration(self, context: LeverContext) -> bool:
        read = read_settings(self.settings(context))
        return (self.reads_ranges and read.ranges is None) or read.keep_worst > 0

    def quantize(self, model: GPT, context: LeverContext, calibration: CalibrationText | None) -> None:
        values = self.settings(context)
        read = read_settings(values)
        ranges = self.smooth(model, values, self._ranges(model, read, calibration))
        chosen, embedding = _chosen(model, read)
        tied = model.lm_head.weight is model.embed.weight  # no longer, once the projection was smoothed
        if read.keep_worst:
            if calibration is None:
                raise LeverError(f"{self.name} has to see text to find the worst {read.keep_worst} layers.")
            errors = self.errors(model, values, ranges, calibration, chosen)
            for path in worst(errors, read.keep_worst):
                chosen.remove(path)
            kept = ", ".join(worst(errors, read.keep_worst))
            calibration.tell(f"{self.title}: kept unquantized, because they change the output most: {kept}.")
        made: dict[str, Int8Weight] = {}
        for path in chosen:
            linear = model.get_submodule(path)
            assert isinstance(linear, nn.Linear)
            made[path] = self.make_layer(path, linear, values, ranges, read.base)
            set_module(model, path, made[path])
        if embedding:
            set_module(model, "embed", _embedding(model, made.get("lm_head") if tied else None, read))
        cast_unquantized(model, read.base)
        for layer in made.values():
            if isinstance(layer, Int8ActivationLinear):
                layer.pack(usual_rows(context))

    def errors(
        self,
        model: GPT,
        values: dict[str, OptionValue],
        ranges: Ranges | None,
        calibration: CalibrationText,
        paths: list[str],
    ) -> list[LayerError]:
        """What each layer does to the prediction when only it is quantized. `model` is unquantized and stays so."""

        def make(path: str, linear: nn.Linear) -> nn.Module:
            return self.make_layer(path, linear, values, ranges, linear.weight.dtype)

        text_NL = calibration.token_ids[:_RANKING_PIECES, :_RANKING_TOKENS]
        return layer_errors(model, make, text_NL, paths, calibration.progress)

    def smooth(self, model: GPT, values: dict[str, OptionValue], ranges: Ranges | None) -> Ranges | None:
        """Change the unquantized model so that it quantizes better; return the ranges that hold afterwards."""
        del model, values
        return ranges

    @abstractmethod
    def make_layer(
        self,
        path: str,
        linear: nn.Linear,
        values: dict[str, OptionValue],
        ranges: Ranges | None,
        dtype: torch.dtype,
    ) -> Int8Weight:
        """The INT8 form of one layer, for inputs and outputs in `dtype`."""

    def _ranges(self, model: GPT, read: Int8Settings, calibration: CalibrationText | None) -> Ranges | None:
        if not self.reads_ranges:
            return None
        if read.ranges is not None:
            return load_ranges(read.ranges)
        if calibration is None:
            raise LeverError(f"{self.name} needs a calibration: a text to read, or the option ranges with a saved one.")
        ranges = observe(model, calibration)
        calibration.keep(ranges)
        return ranges

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        if context.config is None:
            return self.cannot_tell("Without the model's shape the expected number of matrix products is unknown.")
        integer = facts.calls_per_step(lambda kernel: kernel.name in self.products)
        converted = self.converted_per_step(facts, context)
        floating = facts.calls_per_step(lambda kernel: is_linear(kernel) and kernel.name not in INT8_OPS) - converted
        others = facts.calls_per_step(lambda kernel: kernel.name in INT8_OPS) - integer
        if not integer and not converted and not floating and not others:
            return self.cannot_tell("The profile shows no matrix products, so the number format cannot be seen.")
        expected = _quantized_count(context.config, context.fusions, read_settings(self.settings(context)))
        total = linears_per_step(context.config, context.fusions, training=False)
        called = sorted({kernel.name for kernel in facts.kernels} & self.products) or sorted(self.products)
        parts = [f"{integer:.0f} INT8 products ({', '.join(called)})"]
        parts += [f"{converted:.0f} with INT8 weights converted to BF16"] if converted else []
        parts += [f"{floating:.0f} in floating point", f"{max(0, total - expected):.0f} of them expected"]
        sentence = f"Per step {', '.join(parts)}."
        # names that are kept can lie in the same fused layer, so there may be more INT8 products than expected
        enough = integer + converted >= expected - 0.5 and floating <= total - expected + 0.5
        return self.seen(enough and not others, sentence)

    def converted_per_step(self, facts: ProfileFacts, context: LeverContext) -> float:
        """Products of another type whose weights were INT8 in memory."""
        del facts, context
        return 0.0


def limits_for(linear: nn.Linear, read: Int8Settings) -> Tensor:
    """Magnitude of each output channel that becomes 127."""
    percentile = float(read.percentile)
    return weight_limits(linear.weight.detach(), read.clipping, per_channel=read.per_channel, percentile=percentile)


def cast_unquantized(model: GPT, dtype: torch.dtype) -> None:
    """Cast every parameter outside INT8 layers, whose scales stay FP32."""
    for module in model.modules():
        if isinstance(module, Int8Weight | Int8Embedding):
            continue
        for parameter in module.parameters(recurse=False):
            parameter.data = parameter.data.to(dtype)


def _chosen(model: GPT, read: Int8Settings) -> tuple[list[str], bool]:
    """The matrices to quantize, and whether the embedding is."""
    paths = list(linears(model))
    kept = matching([*paths, "embed"], read.keep) if read.keep else set()
    chosen = [path for path in paths if path not in kept and (read.head or path != "lm_head")]
    return chosen, read.embedding and "embed" not in kept


def _embedding(model: GPT, head: Int8Weight | None, read: Int8Settings) -> nn.Module:
    """The table as INT8: the output projection's numbers where both are the same matrix, else its own."""
    if head is not None and read.per_channel:
        return Int8Embedding(head.weight, head.scale, read.base)
    weight_VD = model.embed.weight.detach()
    limit_V1 = weight_limits(weight_VD, read.clipping, per_channel=True, percentile=float(read.percentile))
    own = Int8Weight(weight_VD, limit_V1, None, read.base)
    return Int8Embedding(own.weight, own.scale, read.base)


def _quantized_count(config: GPTConfig, fusions: frozenset[str], read: Int8Settings) -> int:
    """Layers that are INT8, as far as the settings tell; of the worst ones each may be a layer of its own."""
    paths = layer_paths(config, fusions)
    kept = matching([*paths, "embed"], read.keep) - {"embed"} if read.keep else set()
    if not read.head:
        kept.add("lm_head")
    return len(paths) - len(kept) - read.keep_worst


def layer_paths(config: GPTConfig, fusions: frozenset[str]) -> list[str]:
    """Paths of the layers that multiply by a matrix, as `linears` finds them in a model with these fusions."""
    qkv = ["attn.qkv.proj"] if "qkv" in fusions else ["attn.qkv.q", "attn.qkv.k", "attn.qkv.v"]
    up = ["mlp.up"]
    if config.mlp == "swiglu":
        up = ["mlp.gate_up"] if "mlp" in fusions else ["mlp.gate", "mlp.up"]
    per_block = [*qkv, "attn.out", *up, "mlp.down"]
    blocks = [f"blocks.{number}.{matrix}" for number in range(config.n_layer) for matrix in per_block]
    return [*blocks, "lm_head"]
