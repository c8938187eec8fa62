"""Training for a recipe: what is learnt, what stays, and that it helps."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.compression.tuning import Tuner, Tuning, choose_trained, most_sensitive, narrow_layers
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.precision import RECIPES
from gptscope.models.quantization.names import linears
from gptscope.models.quantization.sensitivity import layer_errors

COARSE = {"granularity": "tensor", "clipping": "minmax", "embedding": False, "head": False}


def tuning(**changes: object) -> Tuning:
    return Tuning(**({"mode": "qat", "goal": "original", "steps": 20, "lr": 1e-4, "layers": 2} | changes))


def batches(steps: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(9)
    for _ in range(steps):
        yield torch.randint(0, 97, (4, 24), generator=generator)


@pytest.fixture
def asked(machine: Machine, tiny_model: Callable[[str], GPT]) -> Callable[..., LeverContext]:
    def make(precision: str, **options: object) -> LeverContext:
        config = tiny_model("llama").config
        return LeverContext(
            machine=machine,
            config=config,
            workload="prefill",
            precision=precision,
            kv_cache="none",
            options={precision: options},
        )

    return make


@pytest.fixture
def spoiled(tiny_model: Callable[[str], GPT]) -> GPT:
    """A model with one huge weight in each matrix of its layers: one scale per matrix is too coarse for the others."""
    model = tiny_model("llama")
    with torch.no_grad():
        for parameter in model.blocks.parameters():
            if parameter.dim() > 1:
                parameter.mul_(0.5)
        for path, linear in linears(model).items():
            if path != "lm_head":
                linear.weight[0, 0] = 40 * linear.weight.std()
    return model


def _tell_nobody(_done: int, _total: int, _note: str) -> None:
    pass


def distance(model: GPT, context: LeverContext, reference: torch.Tensor, text_BL: torch.Tensor) -> float:
    """KL of the deployed quantized model from the reference's prediction."""
    import copy

    deployed = copy.deepcopy(model)
    RECIPES[context.precision].quantize(deployed, context, CalibrationText(token_ids=text_BL, source="a test"))
    with torch.no_grad():
        found = deployed(text_BL).float().log_softmax(-1)
    return (reference.exp() * (reference - found)).sum(-1).mean().item()


@pytest.mark.parametrize("precision", ["int8-dynamic", "fp8-current", "nvfp4"])
def test_training_brings_the_quantized_model_nearer_to_the_original(precision: str, spoiled: GPT, asked) -> None:
    options = {**COARSE, "base": "fp32"} if precision == "int8-dynamic" else {}
    context = asked(precision, **options)
    tokens = next(batches(1))
    with torch.no_grad():
        reference = spoiled(tokens).log_softmax(-1)
    before = distance(spoiled, context, reference, tokens)
    narrow = narrow_layers(spoiled, context, None)
    plan = tuning(steps=60)
    choose_trained(spoiled, plan, [])
    losses = list(Tuner(spoiled, narrow, plan, autocast=False).run(iter([tokens] * 60)))
    assert len(losses) == 60
    assert distance(spoiled, context, reference, tokens) < 0.6 * before
    assert not spoiled.training
    assert all(type(layer) is nn.Linear for layer in linears(spoiled).values())


def test_sixteen_bits_train_nearly_as_full_precision_does(tiny_model, asked) -> None:
    tokens, losses = next(batches(1)), {}
    for autocast in (False, True):
        model = tiny_model("llama")
        plan = tuning(goal="text", steps=10, lr=3e-3)
        choose_trained(model, plan, [])
        narrow = narrow_layers(model, asked("int8-dynamic"), None)
        losses[autocast] = list(Tuner(model, narrow, plan, autocast=autocast).run(iter([tokens] * 10)))
    assert losses[True] != losses[False]
    fell = losses[False][0] - losses[False][-1]
    assert fell > 0.2
    assert losses[True][-1] == pytest.approx(losses[False][-1], abs=0.3 * fell)


def test_the_first_loss_is_the_distance_that_quantization_makes(spoiled: GPT, asked) -> None:
    context = asked("int8-dynamic", **COARSE, base="fp32")
    tokens = next(batches(1))
    with torch.no_grad():
        reference = spoiled(tokens).log_softmax(-1)
    expected = distance(spoiled, context, reference, tokens)
    plan = tuning(steps=1)
    choose_trained(spoiled, plan, [])
    (loss,) = Tuner(spoiled, narrow_layers(spoiled, context, None), plan, autocast=False).run(batches(1))
    assert loss == pytest.approx(expected, rel=0.02)


def test_the_text_itself_can_be_the_goal(spoiled: GPT, asked) -> None:
    plan = tuning(goal="text", steps=30, lr=3e-3)
    choose_trained(spoiled, plan, [])
    narrow = narrow_layers(spoiled, asked("int8-dynamic"), None)
    same = next(batches(1))
    losses = list(Tuner(spoiled, narrow, plan, autocast=False).run(iter([same] * 30)))
    assert losses[-1] < losses[0] - 0.3


def test_targeted_training_changes_the_most_sensitive_layers_only(spoiled: GPT, asked, text_BL: torch.Tensor) -> None:
    context = asked("int8-dynamic", **COARSE)
    narrow = narrow_layers(spoiled, context, None)
    told: list[tuple[int, int]] = []
    sensitive = most_sensitive(spoiled, narrow, text_BL, 2, lambda done, total, _note: told.append((done, total)))
    errors = layer_errors(
        spoiled, lambda path, _linear: narrow.layers[path], text_BL, list(narrow.layers), _tell_nobody
    )
    by_kl = sorted(errors, key=lambda one: one.kl, reverse=True)
    assert sensitive == [one.path for one in by_kl[:2]]
    assert told[-1] == (14, 14)
    plan = tuning(mode="targeted", steps=3)
    assert choose_trained(spoiled, plan, sensitive) == tuple(sensitive)
    before = {name: value.clone() for name, value in spoiled.state_dict().items()}
    list(Tuner(spoiled, narrow, plan, autocast=False).run(batches(3)))
    changed = {name for name, value in spoiled.state_dict().items() if not torch.equal(before[name], value)}
    assert changed == {f"{path}.weight" for path in sensitive}


@pytest.mark.parametrize("precision", ["fp8-current", "fp8-delayed", "nvfp4"])
def test_narrow_floating_point_can_be_learnt_too(precision: str, tiny_model, asked, text_BL: torch.Tensor) -> None:
    model = tiny_model("llama")
    text = CalibrationText(token_ids=text_BL, source="a test")
    narrow = narrow_layers(model, asked(precision), text)
    assert len(narrow.layers) == 14
    assert len(most_sensitive(model, narrow, text_BL, 3, lambda *_progress: None)) == 3
    plan = tuning(goal="text", steps=25, lr=3e-3)
    choose_trained(model, plan, [])
    same = next(batches(1))
    losses = list(Tuner(model, narrow, plan, autocast=False).run(iter([same] * 25)))
    assert losses[-1] < losses[0] - 0.3
    assert all(type(layer) is nn.Linear for layer in linears(model).values())


def test_training_repeats_to_the_bit(tiny_model, asked) -> None:
    def run() -> list[float]:
        model = tiny_model("llama")
        narrow = narrow_layers(model, asked("int8-dynamic"), None)
        choose_trained(model, tuning(), [])
        return list(Tuner(model, narrow, tuning(steps=4), autocast=False).run(batches(4)))

    assert run() == run()


def test_a_training_that_is_stopped_leaves_plain_layers(tiny_model, asked) -> None:
    model = tiny_model("llama")
    narrow = narrow_layers(model, asked("int8-dynamic"), None)
    choose_trained(model, tuning(), [])
    running = Tuner(model, narrow, tuning(), autocast=False).run(batches(20))
    next(running)
    assert not any(type(layer) is nn.Linear for layer in model.blocks.modules())
    running.close()
    assert all(type(layer) is nn.Linear for layer in linears(model).values())
    assert len(linears(model)) == 15
