"""Layers are named as in the textbook model, fused or not."""

from collections.abc import Callable

import pytest

from gptscope.models.levers import LeverError
from gptscope.models.precision.int8_recipe import layer_paths
from gptscope.models.prepare import PreparedModel
from gptscope.models.quantization.names import input_name, linears, matching, split_patterns, textbook_names

FUSIONS = ("attention", "qkv", "mlp", "norm")


def test_the_names_follow_from_the_configuration(family: str, prepared: Callable[..., PreparedModel]) -> None:
    for fusions in ((), ("qkv",), FUSIONS):
        model = prepared(family, *fusions)
        assert sorted(linears(model.model)) == sorted(layer_paths(model.config, frozenset(fusions)))


def test_fused_layers_hold_the_textbook_ones(family: str, prepared: Callable[..., PreparedModel]) -> None:
    plain, fused = prepared(family).model, prepared(family, *FUSIONS).model
    held = [name for path in linears(fused) for name in textbook_names(path)]
    assert sorted(held) == sorted(linears(plain))
    assert {input_name(path) for path in linears(plain)} == {input_name(path) for path in linears(fused)}


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ("lm_head", {"lm_head"}),
        ("blocks.1", {"blocks.1.attn.qkv.proj", "blocks.1.attn.out", "blocks.1.mlp.gate_up", "blocks.1.mlp.down"}),
        ("*.mlp.gate", {"blocks.0.mlp.gate_up", "blocks.1.mlp.gate_up"}),
        (
            "blocks.0.attn.qkv.k; blocks.?.attn.out",
            {"blocks.0.attn.qkv.proj", "blocks.0.attn.out", "blocks.1.attn.out"},
        ),
    ],
)
def test_patterns_name_fused_layers_by_what_is_in_them(
    patterns: str, found: set[str], prepared: Callable[..., PreparedModel]
) -> None:
    paths = linears(prepared("llama", *FUSIONS).model)
    assert matching(paths, split_patterns(patterns)) == found


def test_a_pattern_that_names_nothing_is_refused_with_examples(prepared: Callable[..., PreparedModel]) -> None:
    with pytest.raises(LeverError, match=r"No layer is called 'block\.1'.*blocks\.0\.attn\.qkv\.q"):
        matching(linears(prepared("llama", *FUSIONS).model), ["block.1"])
