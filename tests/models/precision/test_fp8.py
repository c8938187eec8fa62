"""The emulated narrow recipes: what they compute, when scales change, and how a profile proves them."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.formats import E4M3, E5M2
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, LeverError, Machine
from gptscope.models.precision import RECIPES
from gptscope.models.precision.fp8_linear import EmulatedLinear, scale_log_of
from gptscope.models.precision.fp8_recipe import EmulatedRecipe
from gptscope.models.precision.fp8_scaling import (
    CurrentScaling,
    DelayedScaling,
    LayerScaling,
    MxScaling,
    NvFp4Scaling,
    RowScaling,
)
from gptscope.models.precision.scale_log import MOST_POINTS, ScaleLog
from gptscope.models.prepare import PreparedModel, prepare
from gptscope.models.training import TrainStep

NARROW = [name for name, recipe in RECIPES.items() if isinstance(recipe, EmulatedRecipe)]
HYBRID = {"input": E4M3, "weight": E4M3, "grad": E5M2}
Prepared = Callable[..., PreparedModel]


def delayed(**settings: object) -> DelayedScaling:
    return DelayedScaling(HYBRID, **({"history": 4, "margin": 0, "algorithm": "max"} | settings))


def nvfp4() -> NvFp4Scaling:
    return NvFp4Scaling(seed=0, random_rounding=True, hadamard=True, square_weights=True)


def layer(scaling: LayerScaling, *, training: bool = True, bias: bool = False) -> tuple[nn.Linear, EmulatedLinear]:
    torch.manual_seed(4)
    linear = nn.Linear(64, 48, bias=bias)
    return linear, EmulatedLinear(linear, "up", scaling, ScaleLog(), training=training)


@pytest.fixture
def calibrated(machine: Machine, tiny_model: Callable[[str], GPT], text_BL: torch.Tensor) -> Prepared:
    """Models for inference, those recipes that need text with text."""

    def make(name: str, precision: str, *fusions: str, **options: object) -> PreparedModel:
        model = tiny_model(name)
        context = LeverContext(
            machine=machine,
            config=model.config,
            workload="decode",
            precision=precision,
            fusions=frozenset(fusions),
            options={precision: options},
        )
        return prepare(model, context, torch.device("cpu"), CalibrationText(token_ids=text_BL, source="a test"))

    return make


def error(prepared: PreparedModel, exact: torch.Tensor, text_BL: torch.Tensor) -> float:
    return ((prepared.logits(text_BL).float() - exact).norm() / exact.norm()).item()


# ------------------------------------------------------------------------------------------------------ scales


def test_delayed_factors_follow_the_history_one_step_later() -> None:
    scaling = delayed(history=3)
    factors = []
    for amax in (2.0, 8.0, 1.0, 1.0, 1.0, 0.0):
        scaling.begin_step()
        factors.append(scaling.factor("input").item())
        scaling.quantize("input", torch.tensor([[amax, -amax / 2]]))
    scaling.begin_step()
    factors.append(scaling.factor("input").item())
    # starts at 1; then the largest of the last three steps; a history of zeros would keep the factor
    assert factors == [1.0, 224.0, 56.0, 56.0, 56.0, 448.0, 448.0]


def test_delayed_factors_can_follow_the_latest_step_and_leave_room() -> None:
    scaling = delayed(algorithm="most_recent", margin=1)
    for amax in (8.0, 2.0):
        scaling.begin_step()
        scaling.quantize("weight", torch.tensor([[amax]]))
    scaling.begin_step()
    assert scaling.factor("weight").item() == 112.0
    for unusable in (0.0, float("inf"), float("nan")):
        scaling.quantize("weight", torch.tensor([[unusable]]))
        scaling.begin_step()
        assert scaling.factor("weight").item() == 112.0


def test_what_outgrows_a_delayed_factor_saturates() -> None:
    scaling = delayed()
    scaling.begin_step()
    scaling.quantize("input", torch.tensor([[1.0]]))
    scaling.begin_step()
    found = scaling.quantize("input", torch.tensor([[0.5, 1.0, 3.0]]))
    assert found.dequantized().tolist() == [[0.5, 1.0, 1.0]]


def test_an_evaluation_leaves_no_trace_in_delayed_factors() -> None:
    _, emulated = layer(delayed())
    emulated(torch.ones(2, 64)).sum().backward()
    with torch.no_grad():
        emulated(torch.full((2, 64), 100.0))
    emulated(torch.ones(2, 64))
    assert emulated.scaling.factor("input").item() == 448.0


# ------------------------------------------------------------------------------------------------- one layer


@pytest.mark.parametrize(
    ("scaling", "tolerance"),
    [
        (CurrentScaling(HYBRID), 0.06),
        (RowScaling(HYBRID, power_of_two=True), 0.06),
        (MxScaling({**HYBRID, "grad": E4M3}, up=True), 0.05),
        (nvfp4(), 0.3),
    ],
    ids=["current", "rowwise", "mxfp8", "nvfp4"],
)
def test_outputs_and_gradients_are_close_to_the_exact_ones_but_not_equal(
    scaling: LayerScaling, tolerance: float
) -> None:
    linear, emulated = layer(scaling)
    x = torch.randn(40, 64, generator=torch.Generator().manual_seed(1))
    seed = torch.randn(40, 48, generator=torch.Generator().manual_seed(2))
    results = []
    for module in (linear, emulated):
        linear.weight.grad, given = None, x.clone().requires_grad_()
        y = module(given)
        (y * seed).sum().backward()
        assert linear.weight.grad is not None
        assert given.grad is not None
        results.append((y.detach(), given.grad, linear.weight.grad.clone()))
    for exact, narrow in zip(*results, strict=True):
        assert 1e-4 < ((narrow - exact).norm() / exact.norm()).item() < tolerance


def test_the_forward_product_is_the_formula_with_torchs_own_fp8_type() -> None:
    linear, emulated = layer(CurrentScaling(HYBRID), bias=True)
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    factor_x, factor_w = 448.0 / x.abs().max(), 448.0 / linear.weight.detach().abs().max()
    narrow_x = (x * factor_x).to(torch.float8_e4m3fn).double() / factor_x
    narrow_w = (linear.weight.detach() * factor_w).to(torch.float8_e4m3fn).double() / factor_w
    expected = narrow_x @ narrow_w.t() + linear.bias.detach().double()
    torch.testing.assert_close(emulated(x).detach().double(), expected, rtol=1e-5, atol=1e-5)


def test_gradients_are_products_of_e5m2_gradients_with_the_forward_passs_e4m3_values() -> None:
    linear, emulated = layer(CurrentScaling(HYBRID))
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    grad = torch.randn(8, 48, generator=torch.Generator().manual_seed(2))
    emulated(x).backward(grad)

    def narrow(t: torch.Tensor, dtype: torch.dtype, largest: float) -> torch.Tensor:
        factor = largest / t.abs().max()
        return (t * factor).to(dtype).double() / factor

    narrow_g = narrow(grad, torch.float8_e5m2, 57344.0)
    narrow_x = narrow(x.detach(), torch.float8_e4m3fn, 448.0)
    narrow_w = narrow(linear.weight.detach(), torch.float8_e4m3fn, 448.0)
    torch.testing.assert_close(x.grad.double(), narrow_g @ narrow_w, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(linear.weight.grad.double(), narrow_g.t() @ narrow_x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scaling", [RowScaling(HYBRID, power_of_two=False), MxScaling(HYBRID, up=True), nvfp4()])
def test_a_weight_kept_for_inference_is_exactly_the_quantized_one(scaling: LayerScaling) -> None:
    linear, kept = layer(scaling, training=False, bias=True)
    assert not list(kept.parameters()) or kept.weight is None
    again = EmulatedLinear(linear, "up", scaling, ScaleLog(), training=True)
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.equal(kept(x), again(x))


def test_under_autocast_activations_are_bf16_and_products_are_not_rounded_before_their_end() -> None:
    linear, emulated = layer(CurrentScaling(HYBRID))
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    plain = emulated(x.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = emulated(x.float())
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, plain.bfloat16())
    assert linear.weight.dtype == torch.float32


# ------------------------------------------------------------------------------------------------ whole models


@pytest.mark.parametrize("precision", NARROW)
def test_models_run_with_an_error_that_their_format_explains(
    precision: str, family: str, calibrated: Prepared, prepared: Prepared, text_BL: torch.Tensor
) -> None:
    exact = prepared(family).logits(text_BL)
    assert 1e-3 < error(calibrated(family, precision), exact, text_BL) < (0.7 if precision == "nvfp4" else 0.2)


@pytest.mark.parametrize("precision", NARROW)
def test_fused_layers_are_quantized_too_and_the_head_is_not(precision: str, calibrated: Prepared) -> None:
    model = calibrated("llama", precision, "attention", "qkv", "mlp", "norm").model
    emulated = [name for name, module in model.named_modules() if isinstance(module, EmulatedLinear)]
    assert emulated == [
        f"blocks.{layer}.{name}"
        for layer in (0, 1)
        for name in ("attn.qkv.proj", "attn.out", "mlp.gate_up", "mlp.down")
    ]
    assert isinstance(model.lm_head, nn.Linear)


@pytest.mark.parametrize("precision", NARROW)
def test_a_training_step_lowers_the_loss_as_bf16_does(
    precision: str, prepared: Prepared, text_BL: torch.Tensor
) -> None:
    losses = {}
    for name in ("bf16", precision):
        step = TrainStep(prepared("llama", workload="train", precision=name), lr=3e-3)
        losses[name] = [step(text_BL).item() for _ in range(12)]
    fell = losses["bf16"][0] - losses["bf16"][-1]
    assert fell > 0.5
    assert losses[precision][-1] == pytest.approx(
        losses["bf16"][-1], abs=(0.5 if precision == "nvfp4" else 0.25) * fell
    )
    assert losses[precision] != losses["bf16"]


@pytest.mark.parametrize("precision", NARROW)
def test_training_repeats_to_the_bit(precision: str, prepared: Prepared, text_BL: torch.Tensor) -> None:
    def run() -> list[float]:
        step = TrainStep(prepared("gpt2", workload="train", precision=precision))
        return [step(text_BL).item() for _ in range(3)]

    assert run() == run()


def test_calibration_sets_delayed_scales_for_inference(calibrated: Prepared, text_BL: torch.Tensor) -> None:
    model = calibrated("llama", "fp8-delayed").model
    seen: dict[str, float] = {}
    first = model.get_submodule("blocks.0.mlp.up")
    first.register_forward_pre_hook(lambda _module, inputs: seen.update(amax=inputs[0].abs().max().item()))
    with torch.inference_mode():
        model(text_BL)
    assert isinstance(first, EmulatedLinear)
    # the scale fits the largest input of the text; earlier layers, unquantized then, move it a little
    assert first.scaling.factor("input").item() * seen["amax"] == pytest.approx(448.0, rel=0.1)
    before = first.scaling.factor("input").item()
    with torch.inference_mode():
        model(text_BL)
    assert first.scaling.factor("input").item() == before


def test_more_bits_or_finer_scales_lose_less(calibrated: Prepared, prepared: Prepared, text_BL: torch.Tensor) -> None:
    exact = prepared("qwen3").logits(text_BL)
    found = {name: error(calibrated("qwen3", name), exact, text_BL) for name in ("mxfp8", "nvfp4")}
    assert found["nvfp4"] > 2 * found["mxfp8"]
    half = error(calibrated("qwen3", "nvfp4", keep="lm_head, blocks.0"), exact, text_BL)
    assert half < found["nvfp4"]


def test_layers_can_be_kept_by_pattern(calibrated: Prepared, prepared: Prepared, text_BL: torch.Tensor) -> None:
    model = calibrated("llama", "nvfp4", keep="lm_head; blocks.0; blocks.1.attn.*").model
    assert [name for name, module in model.named_modules() if isinstance(module, EmulatedLinear)] == [
        "blocks.1.mlp.gate",
        "blocks.1.mlp.up",
        "blocks.1.mlp.down",
    ]
    with pytest.raises(LeverError, match=r"No layer is called 'nothing'.*blocks\.0\.attn\.qkv\.q"):
        calibrated("llama", "nvfp4", keep="nothing")
    with pytest.raises(LeverError, match="leaves no layer"):
        calibrated("llama", "nvfp4", keep="*")


# ----------------------------------------------------------------------------------------- availability, evidence


@pytest.mark.parametrize("precision", NARROW)
def test_the_recipes_say_that_they_are_emulated(precision: str, machine: Machine) -> None:
    context = LeverContext(machine=machine, config=None, workload="train", precision=precision)
    described = RECIPES[precision].describe(context)
    assert described.unavailable_reason is None
    for text in (described.title, described.summary, described.warning):
        assert text is not None
        assert "emulated" in text.lower()
    assert "no speedup" in described.warning
    assert "BF16" not in described.warning
    old = replace(context, machine=replace(machine, cpu_features=frozenset()))
    assert "no native BF16 instructions" in str(RECIPES[precision].warning(old))
    on_gpu = replace(context, machine=replace(machine, device="cuda"))
    assert "Transformer Engine" in str(RECIPES[precision].unavailable_reason(on_gpu))
    compiled = replace(context, fusions=frozenset({"compile"}))
    assert "torch.compile" in str(RECIPES[precision].unavailable_reason(compiled))


@pytest.mark.parametrize("workload", ["train", "decode"])
@pytest.mark.parametrize("precision", NARROW)
def test_a_profile_shows_the_narrow_products(
    precision: str, workload: str, calibrated: Prepared, prepared: Prepared, judge
) -> None:
    model = (
        calibrated("llama", precision)
        if workload == "decode"
        else prepared("llama", workload="train", precision=precision)
    )
    found = judge(model)[precision]
    assert found.in_effect, found.sentence
    assert found.sentence.startswith("The products of 14 layers took narrow values")
    assert "no speedup" in found.sentence


@pytest.mark.parametrize("precision", NARROW)
def test_a_recipe_without_effect_is_caught(
    precision: str, prepared: Prepared, judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmulatedRecipe, "quantize", lambda *_args: None)
    found = judge(prepared("llama", precision=precision))[precision]
    assert found.in_effect is False
    assert found.sentence.startswith("No product took")


def test_a_recipe_that_rounds_nothing_is_caught(prepared: Prepared, judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gptscope.models.formats.minifloat.Minifloat.round", lambda _format, x: x)
    found = judge(prepared("llama", precision="fp8-current"))["fp8-current"]
    assert found.in_effect is False
    assert "only 0 values per step were cast" in found.sentence


# ---------------------------------------------------------------------------------------------------------- log


def test_amax_and_scale_of_each_tensor_are_logged_step_by_step(prepared: Prepared, text_BL: torch.Tensor) -> None:
    model = prepared("llama", workload="train", precision="fp8-delayed")
    step = TrainStep(model)
    for _ in range(3):
        step(text_BL)
    log = scale_log_of(model.model)
    assert log is not None
    series = {(one.layer, one.role): one for one in log.take()}
    assert len(series) == 14 * 3
    weight = series["blocks.1.mlp.down", "weight"]
    assert weight.steps == [1, 2, 3]
    assert weight.scale[0] == 1.0
    assert weight.scale[1] == pytest.approx(448.0 / weight.amax[0])
    assert series["blocks.0.attn.out", "grad"].largest == 57344.0
    assert log.take() == []


def test_the_log_stays_small_however_many_steps_there_are() -> None:
    log = ScaleLog()
    for step in range(1, 5000):
        log.note("a", "input", step, float(step), 1.0, 448.0)
        log.note("b", "input", step, float(step), 1.0, 448.0)
    first, second = log.take()
    assert first.steps == second.steps
    assert MOST_POINTS / 2 <= len(first.steps) <= MOST_POINTS
    assert first.amax == [float(step) for step in first.steps]
    assert len({b - a for a, b in itertools.pairwise(first.steps)}) == 1


def test_models_without_emulated_layers_have_no_log(prepared: Prepared) -> None:
    assert scale_log_of(prepared("llama").model) is None
