"""What a module costs alone: the figures are those of the module, and the reference is left as it was."""

import copy
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.gpt import GPT, init_weights
from gptscope.models.quantization.observing import observe
from gptscope.models.quantization.smoothing import smooth
from gptscope.profiling.experiment import Workload
from gptscope.profiling.records import LayerErrors
from gptscope.profiling.worker import layer_map
from gptscope.profiling.worker.copies import ModelCopies
from gptscope.profiling.worker.failures import NotEnoughMemoryError
from gptscope.profiling.worker.layer_map import MapRequest, map_layers, module_errors, pieces
from gptscope.profiling.worker.module_pairs import find_pairs, swapped, time_pairs
from gptscope.profiling.worker.signal_error import BROKEN_DB, mean_cosine, mean_kl, sqnr_db

CPU = torch.device("cpu")


def model(kit, seed: int = 5) -> GPT:
    made = GPT(kit.tiny).eval().requires_grad_(False)
    init_weights(made, seed)
    return made


def text(tokens: int = 64) -> torch.Tensor:
    return torch.randint(0, 200, (tokens,), generator=torch.Generator().manual_seed(1))


def worsened(original: GPT, **noise: float) -> GPT:
    """A copy whose named modules' weights are disturbed."""
    changed = copy.deepcopy(original)
    changed.lm_head.weight = nn.Parameter(changed.lm_head.weight.clone(), requires_grad=False)
    generator = torch.Generator().manual_seed(4)
    for path, size in noise.items():
        weight = changed.get_submodule(path.replace("__", ".")).weight
        weight += size * torch.randn(weight.shape, generator=generator)
    return changed


def mapped(kit, candidate: GPT, reference: GPT):
    with torch.inference_mode():
        pairs = find_pairs(reference, candidate)
        times = {pair.path: (2.0, 1.0) for pair in pairs}
        tokens_NL = pieces(text(), len(pairs), 1, 64)
        return {one.module: one for one in module_errors(reference, pairs, tokens_NL, times, kit.collected())}


def test_only_what_was_disturbed_costs_anything(kit):
    reference = model(kit)
    found = mapped(kit, worsened(reference, blocks__1__mlp__down=0.05, blocks__0__attn__qkv__v=0.01), reference)
    assert set(found) == {
        "lm_head",
        *(
            f"blocks.{layer}.{part}"
            for layer in range(kit.tiny.n_layer)
            for part in ("attn.qkv.q", "attn.qkv.k", "attn.qkv.v", "attn.out", "mlp.gate", "mlp.up", "mlp.down")
            if part != "mlp.gate" or kit.tiny.mlp == "swiglu"
        ),
    }
    hurt = {name for name, one in found.items() if one.output_sqnr_db is not None}
    assert hurt == {"blocks.1.mlp.down", "blocks.0.attn.qkv.v"}
    assert all(found[name].kl_mean > 0 for name in hurt)
    assert all(one.kl_mean == 0 and one.logit_sqnr_db is None for name, one in found.items() if name not in hurt)
    one = found["blocks.1.mlp.down"]
    assert (one.layer, one.part, one.reference_us, one.candidate_us) == (1, "mlp.down", 2.0, 1.0)


def test_a_modules_error_is_that_of_the_whole_model_with_only_this_module_exchanged(kit):
    reference = model(kit)
    candidate = worsened(reference, blocks__0__mlp__up=0.05)
    one = mapped(kit, candidate, reference)["blocks.0.mlp.up"]
    by_hand = copy.deepcopy(reference)
    by_hand.blocks[0].mlp.up = candidate.blocks[0].mlp.up
    tokens_NL = pieces(text(), 1, 1, 64)
    with torch.no_grad():
        p, q = (each(tokens_NL).double().log_softmax(-1) for each in (reference, by_hand))
    assert tokens_NL.shape == (1, 64)
    assert one.kl_mean == pytest.approx(float((p.exp() * (p - q)).sum(-1).mean()), rel=1e-3)


def test_the_reference_is_unchanged_afterwards_also_after_an_error(kit):
    reference = model(kit)
    before = dict(reference.named_modules())
    mapped(kit, worsened(reference, blocks__0__mlp__up=0.05), reference)
    pair = find_pairs(reference, model(kit))[0]
    with pytest.raises(RuntimeError, match="on purpose"), swapped(reference, pair):
        raise RuntimeError("on purpose")
    assert dict(reference.named_modules()) == before
    assert not any(module._forward_hooks for module in before.values())


def test_a_rescaled_norm_is_made_good_for(kit):
    """SmoothQuant moves a factor from the norm into the weights that read it: together nothing changes."""
    reference = model(kit)
    smoothed = copy.deepcopy(reference)
    factor_D = torch.linspace(0.5, 2.0, kit.tiny.d_model)
    smoothed.blocks[1].mlp_norm.weight /= factor_D
    if getattr(smoothed.blocks[1].mlp_norm, "bias", None) is not None:
        smoothed.blocks[1].mlp_norm.bias /= factor_D
    for name in ("gate", "up"):
        if hasattr(smoothed.blocks[1].mlp, name):
            getattr(smoothed.blocks[1].mlp, name).weight.mul_(factor_D)
    found = mapped(kit, smoothed, reference)
    assert found["blocks.1.mlp.up"].output_sqnr_db > 100
    assert found["blocks.1.mlp.up"].kl_mean < 1e-6


def test_a_smoothed_gated_mlp_is_made_good_for(kit):
    """SmoothQuant moves a factor from the rows of `up` into the columns of `down`: each alone must not look wrong."""
    reference = model(kit)
    smoothed = copy.deepcopy(reference)
    ranges = observe(reference, CalibrationText(token_ids=text(128).view(2, 64), source="a test"))
    factors = smooth(smoothed, ranges, 0.8)
    assert factors["blocks.0.mlp.down"].max() > 2 * factors["blocks.0.mlp.down"].min()
    found = mapped(kit, smoothed, reference)
    for name in ("blocks.0.mlp.up", "blocks.0.mlp.gate", "blocks.1.mlp.down", "blocks.1.attn.qkv.q"):
        assert found[name].output_sqnr_db > 100, name
        assert found[name].kl_mean < 1e-6, name


def test_modules_of_other_sizes_are_taken_as_a_whole(kit):
    reference, pruned = model(kit), model(kit)
    mlp = pruned.blocks[0].mlp
    kept = kit.tiny.d_ff // 2
    for name in ("gate", "up"):
        if hasattr(mlp, name):
            old = getattr(mlp, name)
            new = nn.Linear(old.in_features, kept, bias=old.bias is not None).requires_grad_(False)
            new.weight.copy_(old.weight[:kept])
            if old.bias is not None:
                new.bias.copy_(old.bias[:kept])
            setattr(mlp, name, new)
    down = nn.Linear(kept, kit.tiny.d_model, bias=mlp.down.bias is not None).requires_grad_(False)
    down.weight.copy_(mlp.down.weight[:, :kept])
    if mlp.down.bias is not None:
        down.bias.copy_(mlp.down.bias)
    mlp.down = down
    found = mapped(kit, pruned, reference)
    assert "blocks.0.mlp" in found
    assert not any(name.startswith("blocks.0.mlp.") for name in found)
    assert found["blocks.0.mlp"].kl_mean > 0
    assert "blocks.1.mlp.up" in found
    pairs = find_pairs(reference, pruned)
    with torch.inference_mode():
        times = time_pairs(kit.prepared(), pairs, 4)
    assert all(ours > 0 and theirs > 0 for ours, theirs in times.values())


def test_a_module_that_gives_nan_is_broken_not_good(kit):
    reference, broken = model(kit), model(kit)
    broken.blocks[0].attn.out.weight[0, 0] = math.nan
    one = mapped(kit, broken, reference)["blocks.0.attn.out"]
    assert one.kl_mean is None
    assert one.output_sqnr_db == one.logit_sqnr_db == BROKEN_DB
    assert one.output_cosine is None


def test_a_map_of_a_real_recipe_is_sent_as_one_record(kit, monkeypatch):
    monkeypatch.setattr(layer_map, "MOST_FLOPS", 1e8)
    output = kit.collected()
    context = replace(kit.prepared().context, precision="bf16", config=kit.tiny, fusions=frozenset({"qkv", "mlp"}))
    request = MapRequest("r", "b", context, Workload(), text(200), "a text")
    map_layers(request, ModelCopies("preset:tiny", 1234, CPU, None), output)
    (sent,) = output.of(LayerErrors)
    assert (sent.run_id, sent.baseline_run_id, sent.text, sent.timed_tokens) == ("r", "b", "a text", 1)
    assert len(sent.stream_sqnr_db) == kit.tiny.n_layer
    assert all(20 < value < 80 for value in sent.stream_sqnr_db), "BF16 has 8 bits of fraction"
    assert sent.kl_all > 0
    assert all(one.output_sqnr_db > 30 for one in sent.modules if one.module != "embed")
    assert all(one.reference_us > 0 and one.candidate_us > 0 for one in sent.modules)


def test_copies_that_do_not_fit_are_refused_before_they_are_made(kit, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1000))
    with pytest.raises(NotEnoughMemoryError, match="The layer map needs 2 more copies of the model"):
        ModelCopies("preset:tiny", 1, CPU, None).check_room(kit.tiny, 2, "The layer map")


@pytest.mark.parametrize(
    ("parameters", "modules", "shape"),
    [(1_000, 10, (16, 128)), (135_000_000, 211, (1, 128)), (7_000_000_000, 225, (1, 64))],
)
def test_larger_models_read_less_text(parameters, modules, shape):
    tokens_NL = pieces(torch.arange(100_000), modules, parameters, 2048)
    assert tokens_NL.shape == shape
    assert torch.equal(tokens_NL.flatten(), torch.arange(tokens_NL.numel()))


def test_signal_to_error_is_in_decibels_of_power():
    exact = torch.tensor([3.0, 4.0])
    assert sqnr_db(exact, exact + torch.tensor([0.0, 0.05])) == pytest.approx(40.0, abs=1e-3)
    assert sqnr_db(exact, exact) is None
    assert mean_cosine(exact[None], torch.tensor([[4.0, -3.0]])) == pytest.approx(0.0, abs=1e-12)
    even = torch.tensor([[0.5, 0.5]]).log()
    assert mean_kl(even, torch.tensor([[0.25, 0.75]]).log()) == pytest.approx(0.5 * math.log(4 / 3))
