"""Which modules to keep unquantized, what that should cost, and the variant that does it."""

import pytest

from gptscope.profiling.experiment import Variant
from gptscope.profiling.quality.mixed import mixed_variant, propose, worst_first
from gptscope.profiling.records import LayerErrors, ModuleError


def module(name: str, kl: float | None, saved_us: float) -> ModuleError:
    return ModuleError(
        module=name,
        layer=0,
        part="x",
        parameters=1,
        kl_mean=kl,
        logit_sqnr_db=1.0,
        output_sqnr_db=1.0,
        output_cosine=1.0,
        reference_us=10.0,
        candidate_us=10.0 - saved_us,
    )


def errors(*modules: ModuleError, kl_all: float | None = 0.5) -> LayerErrors:
    return LayerErrors(
        run_id="b",
        baseline_run_id="a",
        modules=modules,
        stream_sqnr_db=(),
        tokens=1,
        timed_tokens=1,
        kl_all=kl_all,
        reference="FP32",
    )


MAP = errors(module("a", 0.01, 1.0), module("b", 0.06, 2.0), module("c", 0.03, 5.0))


def test_the_worst_come_first_and_broken_ones_before_all() -> None:
    assert [one.module for one in worst_first(MAP)] == ["b", "c", "a"]
    assert worst_first(errors(*MAP.modules, module("d", None, 1.0)))[0].module == "d"


def test_a_proposal_scales_the_error_of_all_by_what_is_left() -> None:
    mixed = propose(MAP, 1)
    assert mixed.kept == ("b",)
    assert mixed.predicted_kl == pytest.approx(0.5 * 0.04 / 0.10)
    assert mixed.saved_us == pytest.approx(6.0)
    assert mixed.saved_share == pytest.approx(6.0 / 8.0)


def test_keeping_all_leaves_no_error_and_no_gain() -> None:
    mixed = propose(MAP, 99)
    assert (mixed.predicted_kl, mixed.saved_us, mixed.saved_share) == (0.0, 0.0, 0.0)


def test_without_errors_there_is_nothing_to_predict() -> None:
    assert propose(errors(module("a", 0.0, -1.0)), 1).predicted_kl is None
    assert propose(errors(module("a", 0.0, -1.0)), 1).saved_share is None
    assert propose(errors(module("a", 0.1, 1.0), kl_all=None), 0).predicted_kl is None


def test_the_mixed_variant_keeps_these_modules_besides_those_kept_before() -> None:
    variant = Variant(
        precision="int8-static", options={"int8-static": {"keep": "lm_head", "head": True}, "compile": {"mode": "x"}}
    )
    mixed = mixed_variant(variant, ("blocks.1.mlp.down", "blocks.0.attn.out"))
    assert mixed.options["int8-static"] == {"keep": "lm_head+blocks.1.mlp.down+blocks.0.attn.out", "head": True}
    assert mixed.options["compile"] == {"mode": "x"}
    assert mixed.name == "INT8-STATIC, worst 2 kept"
    assert variant.options["int8-static"]["keep"] == "lm_head", "the original stays as it is"
