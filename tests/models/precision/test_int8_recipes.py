"""INT8 recipes on tiny models: what is quantized, what it does to the output, and how a profile proves it."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gptscope.models.calibration import CalibrationText
from gptscope.models.decoding.session import DecodeSession
from gptscope.models.gpt import GPT
from gptscope.models.levers import Evidence, KernelFact, LeverContext, LeverError, Machine, ProfileFacts
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import PreparedModel, prepare, read_weight_bytes, resolve_fusions
from gptscope.models.quantization.layers import Int8Embedding, Int8Weight
from gptscope.models.quantization.names import linears
from gptscope.models.quantization.observing import observe
from gptscope.models.quantization.ranges_file import Ranges, save_ranges

Prepare = Callable[..., PreparedModel]
Judge = Callable[..., dict[str, Evidence]]
INT8 = ("int8-weight-only", "int8-dynamic", "int8-static", "int8-smoothquant")
FUSIONS = ("attention", "qkv", "mlp", "norm")


@pytest.fixture
def calibration(text_BL: torch.Tensor) -> CalibrationText:
    return CalibrationText(token_ids=text_BL, source="a test")


@pytest.fixture
def quantized(prepared: Prepare, calibration: CalibrationText) -> Prepare:
    """`quantized("llama", "int8-static", "qkv", range="minmax")`."""

    def make(
        name: str, recipe: str, *fusions: str, workload: str = "decode", kv: str = "static", **options: object
    ) -> PreparedModel:
        given = {recipe: {key.replace("_", "-"): value for key, value in options.items()}}
        levers = {"precision": recipe, "workload": workload, "kv_cache": kv, "options": given}
        return prepared(name, *fusions, calibration=calibration, **levers)

    return make


def kl(model: PreparedModel, reference: PreparedModel, text_BL: torch.Tensor) -> float:
    exact, found = (one.logits(text_BL).float().log_softmax(-1) for one in (reference, model))
    return float((exact.exp() * (exact - found)).sum(-1).mean())


@pytest.mark.parametrize("recipe", INT8)
def test_every_recipe_keeps_the_prediction_of_every_family(
    family: str, recipe: str, quantized: Prepare, prepared: Prepare, text_BL: torch.Tensor
) -> None:
    reference = prepared(family)
    divergence = {}
    for fusions in ((), FUSIONS):
        model = quantized(family, recipe, *fusions)
        assert linears(model.model) == {}, "every matrix is INT8"
        assert isinstance(model.model.embed, Int8Embedding)
        assert model.logits(text_BL).dtype == model.dtype == torch.bfloat16
        divergence[fusions] = kl(model, reference, text_BL)
        assert 0 < divergence[fusions] < 0.05, fusions
    session = DecodeSession(quantized(family, recipe, *FUSIONS), 2, 30)
    session.prefill(text_BL)
    assert session.step().shape == (2,)


@pytest.mark.parametrize("recipe", INT8)
def test_an_fp32_base_leaves_only_the_products_rounded(
    recipe: str, quantized: Prepare, prepared: Prepare, text_BL: torch.Tensor
) -> None:
    model = quantized("llama", recipe, *FUSIONS, base="fp32")
    assert model.dtype == model.logits(text_BL).dtype == torch.float32
    assert {parameter.dtype for parameter in model.model.parameters()} == {torch.float32}
    assert model.activation_bytes == 4
    assert kl(model, prepared("llama"), text_BL) < 0.05


def test_weights_take_a_quarter_of_fp32(quantized: Prepare, prepared: Prepare) -> None:
    plain, small = prepared("qwen2", *FUSIONS), quantized("qwen2", "int8-dynamic", *FUSIONS)
    assert plain.weight_bytes == read_weight_bytes(plain.model), "the head is the table, so all of it is read"
    assert 0.25 < small.weight_bytes / plain.weight_bytes < 0.40  # scales weigh much in a tiny model
    assert small.model.embed.weight.data_ptr() == small.model.lm_head.weight.data_ptr(), "tied: one copy"
    untied = quantized("mistral", "int8-dynamic", *FUSIONS)
    table = untied.model.embed.weight.nbytes + untied.model.embed.scale.nbytes
    assert untied.read_weight_bytes == untied.weight_bytes - table


def test_kept_layers_stay_in_the_base_format_whatever_is_fused(quantized: Prepare) -> None:
    for fusions, kept in (
        ((), {"blocks.0.attn.qkv.k", "blocks.0.mlp.down", "blocks.1.mlp.down"}),
        (FUSIONS, {"blocks.0.attn.qkv.proj", "blocks.0.mlp.down", "blocks.1.mlp.down"}),
    ):
        model = quantized("llama", "int8-dynamic", *fusions, keep="blocks.0.attn.qkv.k, *.mlp.down").model
        assert set(linears(model)) == kept
        assert {linear.weight.dtype for linear in linears(model).values()} == {torch.bfloat16}


def test_head_and_embedding_can_be_left_out(quantized: Prepare) -> None:
    model = quantized("llama", "int8-weight-only", head="off", embedding="off").model
    assert set(linears(model)) == {"lm_head"}
    assert model.lm_head.weight is model.embed.weight
    assert model.embed.weight.dtype == torch.bfloat16
    without_table = quantized("llama", "int8-weight-only", keep="embed").model
    assert isinstance(without_table.embed, torch.nn.Embedding)
    assert linears(without_table) == {}


def test_the_worst_layers_are_found_on_the_text_and_told(
    prepared: Prepare, text_BL: torch.Tensor, calibration: CalibrationText
) -> None:
    told: list[str] = []
    steps: list[tuple[int, int, str]] = []
    listening = replace(calibration, tell=told.append, progress=lambda *step: steps.append(step))
    options = {"int8-dynamic": {"granularity": "tensor", "keep-worst": 2, "base": "fp32"}}
    levers = {"precision": "int8-dynamic", "options": options, "calibration": listening}
    model = prepared("llama", *FUSIONS, **levers)
    kept = set(linears(model.model))
    assert len(kept) == 2
    assert all(name in told[0] for name in kept)
    assert steps[-1][:2] == (9, 9)
    without = copy.deepcopy(options)
    without["int8-dynamic"]["keep-worst"] = 0
    naive = prepared("llama", *FUSIONS, **(levers | {"options": without}))
    reference = prepared("llama", *FUSIONS)
    assert kl(model, reference, text_BL) < kl(naive, reference, text_BL)


@pytest.fixture
def with_outliers(
    tiny_model: Callable[[str], GPT], machine: Machine, calibration: CalibrationText
) -> Callable[..., PreparedModel]:
    """Models with rows of large weights and features of large activations, as trained ones have them."""

    def make(recipe: str, **options: object) -> PreparedModel:
        model = tiny_model("llama")
        with torch.no_grad():
            for block in model.blocks:
                block.attn.out.weight[5] *= 25
                block.mlp_norm.weight[7] *= 30
                block.mlp.gate.weight[:, 7] /= 30
                block.mlp.up.weight[:, 7] /= 30
        given = {recipe: {key.replace("_", "-"): value for key, value in options.items()}}
        context = LeverContext(
            machine=machine, config=model.config, workload="prefill", precision=recipe, options=given if options else {}
        )
        return prepare(model, context, torch.device("cpu"), calibration)

    return make


def test_outliers_ruin_coarse_scales_and_finer_ones_smoothing_and_kept_layers_win_it_back(
    with_outliers: Callable[..., PreparedModel], text_BL: torch.Tensor
) -> None:
    reference = with_outliers("fp32")

    def cost(recipe: str, **options: object) -> float:
        return kl(with_outliers(recipe, base="fp32", **options), reference, text_BL)

    naive = cost("int8-static", granularity="tensor", clipping="minmax", range="minmax")
    channel = cost("int8-static", range="mse")
    assert channel < naive / 3
    assert cost("int8-dynamic") < cost("int8-dynamic", activations="tensor")
    assert cost("int8-dynamic") < cost("int8-dynamic", granularity="tensor", clipping="minmax")
    assert cost("int8-smoothquant", activations="static", range="minmax") < cost("int8-static", range="minmax")
    assert cost("int8-static", granularity="tensor", clipping="minmax", range="minmax", keep_worst=4) < naive / 2
    assert cost("int8-weight-only") < cost("int8-dynamic")


def test_each_range_method_gives_a_scale_of_its_own(quantized: Prepare) -> None:
    scales = {
        method: float(quantized("gpt2", "int8-static", range=method).model.blocks[0].mlp.down.input_scale)
        for method in ("minmax", "percentile", "mse", "entropy")
    }
    assert all(0 < scale <= scales["minmax"] * 1.0001 for scale in scales.values())
    assert scales["percentile"] < scales["minmax"]


def test_kept_ranges_give_the_same_model_again_without_a_text(
    quantized: Prepare, prepared: Prepare, calibration: CalibrationText, text_BL: torch.Tensor, tmp_path: Path
) -> None:
    found: list[Ranges] = []
    listening = replace(calibration, keep=found.append)
    for recipe in ("int8-static", "int8-smoothquant"):
        first = prepared("llama", "qkv", precision=recipe, calibration=listening)
        save_ranges(found[-1], tmp_path / "ranges.json")
        options = {recipe: {"ranges": str(tmp_path / "ranges.json")}}
        assert not RECIPES[recipe].needs_calibration(replace(first.context, options=options))
        again = prepared("llama", "qkv", precision=recipe, options=options)
        assert torch.allclose(again.logits(text_BL).float(), first.logits(text_BL).float(), atol=2e-2)
    other = observe(prepared("qwen3").model, calibration)
    with pytest.raises(LeverError, match=r"of another model: blocks\.0\.attn\.out has 64 features there and 32 here"):
        Ranges("x", 1, other.inputs).channels("blocks.0.attn.out", 32)
    with pytest.raises(LeverError, match="cannot be read"):
        prepared("gpt2", precision="int8-smoothquant", options={"int8-smoothquant": {"ranges": str(tmp_path / "gone")}})
    with pytest.raises(LeverError, match="needs a calibration: a text to read"):
        prepared("gpt2", precision="int8-static")


def test_recipes_say_where_they_run_and_what_they_need(machine: Machine) -> None:
    for name in INT8:
        context = LeverContext(machine=machine, config=None, workload="decode", precision=name)
        assert RECIPES[name].unavailable_reason(context) is None
        assert RECIPES[name].warning(context) is None
        on_gpu = replace(context, machine=replace(machine, device="cuda"))
        assert "call the CPU's kernels" in (RECIPES[name].unavailable_reason(on_gpu) or "")
        assert "only in prefill" in (RECIPES[name].unavailable_reason(replace(context, workload="train")) or "")
        old = replace(context, machine=replace(machine, cpu_features=frozenset()))
        assert "set the option base to fp32" in (RECIPES[name].warning(old) or "")
        assert RECIPES[name].warning(replace(old, options={name: {"base": "fp32"}})) is None
        assert RECIPES[name].needs_calibration(context) is (name in ("int8-static", "int8-smoothquant"))
        assert RECIPES[name].needs_calibration(replace(context, options={name: {"keep-worst": 1}}))


def test_packed_weights_stand_aside(machine: Machine) -> None:
    context = LeverContext(machine=machine, config=None, workload="decode", precision="int8-dynamic")
    chosen, skipped = resolve_fusions(["all"], context)
    assert "packed_linear" not in chosen
    assert "brings products of its own" in skipped["packed_linear"]


@pytest.mark.parametrize("recipe", INT8)
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_profile_proves_the_recipe(name: str, recipe: str, quantized: Prepare, judge: Judge) -> None:
    for fusions, options in (
        ((), {}),
        (FUSIONS, {}),
        (FUSIONS, {"keep": "blocks.0.attn.qkv.q, blocks.0.attn.qkv.v, *.mlp.up", "head": "off"}),
        ((), {"keep_worst": 2}),
    ):
        evidence = judge(quantized(name, recipe, *fusions, **options))
        for lever in (recipe, *fusions):
            assert evidence[lever].in_effect, (fusions, options, evidence[lever])


@pytest.mark.parametrize("recipe", INT8)
def test_a_recipe_that_was_never_applied_or_only_half_is_caught(
    recipe: str, quantized: Prepare, prepared: Prepare, judge: Judge
) -> None:
    for fusions in ((), FUSIONS):
        for other in (prepared("llama", *fusions), prepared("llama", *fusions, precision="bf16")):
            pretended = replace(copy.copy(other), context=replace(other.context, precision=recipe))
            evidence = judge(pretended)[recipe]
            assert evidence.in_effect is False, evidence
            assert "0 INT8 products" in evidence.sentence
        half = quantized("llama", recipe, *fusions, keep="blocks.0")
        claimed = replace(copy.copy(half), context=replace(half.context, options={}))
        assert judge(claimed)[recipe].in_effect is False, "a whole layer is not INT8"


def test_one_int8_recipe_is_not_taken_for_another(quantized: Prepare, judge: Judge) -> None:
    for real, claimed in (("int8-weight-only", "int8-dynamic"), ("int8-dynamic", "int8-weight-only")):
        model = quantized("llama", real, *FUSIONS)
        pretended = replace(copy.copy(model), context=replace(model.context, precision=claimed, options={}))
        assert judge(pretended)[claimed].in_effect is False


def test_weight_only_products_of_many_rows_are_proven_by_their_conversion(
    quantized: Prepare, prepared: Prepare, judge: Judge
) -> None:
    model = quantized("llama", "int8-weight-only", *FUSIONS, kv="int8")
    for layer in model.model.modules():
        if isinstance(layer, Int8Weight):
            layer.few_rows = 0
    evidence = judge(model)
    assert evidence["int8-weight-only"].in_effect
    assert "9 with INT8 weights converted to BF16" in evidence["int8-weight-only"].sentence
    assert evidence["int8"].in_effect
    plain = prepared("llama", *FUSIONS, precision="bf16", kv_cache="int8")
    pretended = replace(copy.copy(plain), context=replace(plain.context, precision="int8-weight-only"))
    assert judge(pretended)["int8-weight-only"].in_effect is False


def test_compiled_code_cannot_tell_conversions_apart(machine: Machine, tiny_model: Callable[[str], GPT]) -> None:
    config = tiny_model("llama").config
    context = LeverContext(
        machine=machine, config=config, workload="prefill", precision="int8-weight-only", fusions=frozenset({"compile"})
    )
    merged = [KernelFact(name="aten::mm", calls=15, self_time_us=9, dtypes=("c10::BFloat16", "c10::BFloat16"))]
    facts = ProfileFacts(kernels=merged, steps=1, n_layer=2, workload="prefill", device="cpu")
    recipe = RECIPES["int8-weight-only"]
    assert recipe.evidence(facts, context).in_effect is None
    assert recipe.evidence(facts, replace(context, fusions=frozenset())).in_effect is False
    nothing = ProfileFacts(kernels=[], steps=1, n_layer=2, workload="prefill", device="cpu")
    assert recipe.evidence(nothing, context).in_effect is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("recipe", ["int8-weight-only", "int8-dynamic", "int8-static"])
def test_compilation_traces_int8_layers_without_a_break(
    recipe: str, quantized: Prepare, text_BL: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_really = torch.compile
    monkeypatch.setattr("torch.compile", lambda function, options: compile_really(function, backend="aot_eager"))
    torch._dynamo.reset()
    eager = quantized("llama", recipe, *FUSIONS)
    compiled = quantized("llama", recipe, *FUSIONS, "compile")
    expected = eager.logits(text_BL).float().flatten()
    found = compiled.logits(text_BL).float().flatten()
    assert torch.cosine_similarity(found, expected, dim=0) > 0.99
    assert (compiled.regions, compiled.graph_breaks) == (1, 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_int8_products_show_in_a_profile(quantized: Prepare, judge: Judge) -> None:
    torch._dynamo.reset()
    evidence = judge(quantized("llama", "int8-static", *FUSIONS, "compile", kv="int8"))
    for lever in ("int8-static", "compile", "int8"):
        assert evidence[lever].in_effect, evidence[lever]
