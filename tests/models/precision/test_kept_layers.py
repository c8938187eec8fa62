"""Layers that are kept unquantized: the same ones by every recipe, whatever is fused and however a family is built."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import PreparedModel
from gptscope.models.quantization.names import linears
from gptscope.profiling.experiment import Variant
from gptscope.profiling.quality.mixed import mixed_variant

Prepare = Callable[..., PreparedModel]
NARROW = [name for name in RECIPES if name.startswith(("int8", "fp8", "mxfp8", "nvfp4"))]
FUSED = ("attention", "qkv", "mlp", "norm")


@pytest.fixture
def left(prepared: Prepare, text_BL: torch.Tensor) -> Callable[..., set[str]]:
    """Paths of the layers that a recipe with these settings leaves as they were."""

    def make(family: str, recipe: str, fusions: tuple[str, ...] = FUSED, **options: object) -> set[str]:
        given = {recipe: {name.replace("_", "-"): value for name, value in options.items()}}
        text = CalibrationText(token_ids=text_BL, source="a test")
        model = prepared(family, *fusions, precision=recipe, options=given, calibration=text).model
        plain = {path for path, module in model.named_modules() if isinstance(module, nn.Linear)}
        assert plain == set(linears(model))
        return plain

    return make


def test_every_narrow_recipe_is_tested() -> None:
    assert len(NARROW) == 9


@pytest.mark.parametrize("recipe", NARROW)
def test_textbook_names_find_the_fused_layers_that_hold_them(recipe: str, left: Callable[..., set[str]]) -> None:
    for family, up in (("gpt2", "mlp.up"), ("gpt_neox", "mlp.up"), ("qwen3", "mlp.gate_up")):
        kept = left(family, recipe, keep="blocks.1.attn.qkv.k+blocks.0.mlp.up+*.attn.out", head=True)
        assert kept == {"blocks.1.attn.qkv.proj", f"blocks.0.{up}", "blocks.0.attn.out", "blocks.1.attn.out"}, family
    separate = left("qwen2", recipe, (), keep="blocks.1.attn.qkv.k+blocks.0.mlp.up", head=True)
    assert separate == {"blocks.1.attn.qkv.k", "blocks.0.mlp.up"}


@pytest.mark.parametrize("recipe", NARROW)
def test_a_whole_layer_and_the_head_are_kept_by_name(recipe: str, left: Callable[..., set[str]]) -> None:
    assert left("qwen2", recipe, keep="blocks.0", head=False) == {
        "blocks.0.attn.qkv.proj", "blocks.0.attn.out", "blocks.0.mlp.gate_up", "blocks.0.mlp.down", "lm_head",
    }  # fmt: skip


@pytest.mark.parametrize("recipe", NARROW)
def test_a_mix_keeps_the_worst_modules_beside_what_the_recipe_keeps_by_itself(
    recipe: str, left: Callable[..., set[str]]
) -> None:
    """The layer map names textbook modules; the variant that it proposes runs fused."""
    mixed = mixed_variant(Variant(precision=recipe), ("blocks.1.mlp.gate", "blocks.0.attn.qkv.v"))
    before, after = left("qwen3", recipe), left("qwen3", recipe, **mixed.options[recipe])
    assert after == before | {"blocks.1.mlp.gate_up", "blocks.0.attn.qkv.proj"}


@pytest.mark.parametrize("recipe", [name for name in NARROW if name.startswith("int8")])
@pytest.mark.parametrize("family", ["gpt2", "qwen3"])
def test_the_worst_layers_are_fused_ones_where_layers_are_fused(
    recipe: str, family: str, left: Callable[..., set[str]]
) -> None:
    all_fused = left(family, recipe, keep="*", embedding=False)
    worst = left(family, recipe, keep_worst=len(all_fused) - 1)
    assert len(worst) == len(all_fused) - 1
    assert worst < all_fused
