"""Levers are chosen by name, refused with a reason, and described for menus."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from gptscope.models.config import PRESETS
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import LeverError, PreparedModel, list_levers, prepare, resolve_fusions

Prepare = Callable[..., PreparedModel]


def question(machine: Machine, **changes: object) -> LeverContext:
    context = LeverContext(machine=machine, config=PRESETS["llama-135m"], workload="decode", precision="fp32")
    return replace(context, **changes)


def test_all_means_every_fusion_for_the_workload_except_compile(machine: Machine) -> None:
    chosen, skipped = resolve_fusions(["all"], question(machine))
    assert chosen == ("attention", "qkv", "mlp", "norm", "packed_linear")
    assert set(skipped) == {"optimizer"}
    assert "only in train" in skipped["optimizer"]
    chosen, skipped = resolve_fusions(["all"], question(machine, workload="train"))
    assert chosen == ("attention", "qkv", "mlp", "norm", "optimizer")
    assert set(skipped) == {"packed_linear"}


def test_compile_is_applied_when_named(machine: Machine) -> None:
    chosen, skipped = resolve_fusions(["all", "compile"], question(machine))
    assert chosen == ("attention", "qkv", "mlp", "norm", "packed_linear", "compile")
    assert set(skipped) == {"optimizer"}


@pytest.mark.parametrize("requested", [[], ["none"]])
def test_none_means_no_fusion(requested: list[str], machine: Machine) -> None:
    assert resolve_fusions(requested, question(machine)) == ((), {})


def test_none_beside_another_fusion_is_refused(machine: Machine) -> None:
    with pytest.raises(LeverError, match="none cannot be combined"):
        resolve_fusions(["none", "qkv"], question(machine))


def test_an_unknown_fusion_is_answered_with_the_names_that_exist(machine: Machine) -> None:
    with pytest.raises(LeverError, match=r"no fusion called 'flash'.*attention, qkv, mlp, norm, optimizer, packed_li"):
        resolve_fusions(["flash"], question(machine))


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("optimizer", {}, "only in train"),
        ("packed_linear", {"workload": "train"}, "only in prefill, decode, generate"),
        ("packed_linear", {"config": PRESETS["tiny"]}, "largest matrix has 32,768 weights"),
    ],
)
def test_a_fusion_asked_for_by_name_but_unavailable_is_refused_with_its_reason(
    name: str, changes: dict[str, object], reason: str, machine: Machine
) -> None:
    with pytest.raises(LeverError, match=reason):
        resolve_fusions([name], question(machine, **changes))


def test_compile_without_a_compiler_says_what_to_install(machine: Machine) -> None:
    bare = replace(machine, compiler=None)
    with pytest.raises(LeverError, match=r"working C\+\+ compiler.*g\+\+"):
        resolve_fusions(["compile"], question(bare))
    reasons = {lever.name: lever.unavailable_reason for lever in list_levers(bare, None, "decode")}
    assert "C++ compiler" in (reasons["compile"] or "")
    assert reasons["attention"] is None


def test_packed_weights_need_a_cpu_with_the_products(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = replace(machine, device="cuda", compute_capability=(9, 0))
    reasons = {lever.name: lever.unavailable_reason for lever in list_levers(gpu, None, "decode")}
    assert "a GPU reads plain weights" in (reasons["packed_linear"] or "")
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: False)
    reasons = {lever.name: lever.unavailable_reason for lever in list_levers(machine, None, "decode")}
    assert "no oneDNN" in (reasons["packed_linear"] or "")


def test_every_lever_is_described_once_with_sentences(machine: Machine) -> None:
    levers = list_levers(machine, None, "train")
    precisions = [lever.name for lever in levers if lever.group == "precision"]
    assert precisions[:6] == ["fp32", "tf32", "bf16", "fp16", "int8-weight-only", "int8-dynamic"]
    assert precisions == list(RECIPES)
    assert [lever.name for lever in levers if lever.group == "kv_cache"] == ["none", "dynamic", "static", "int8"]
    names = [lever.name for lever in levers if lever.group == "fusion"]
    assert names == ["attention", "qkv", "mlp", "norm", "optimizer", "packed_linear", "compile"]
    for lever in levers:
        for sentence in (lever.summary, lever.unavailable_reason, lever.warning):
            assert sentence is None or sentence.endswith("."), sentence


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precision": "fp8"}, "no precision called 'fp8'. What exists: fp32, tf32, bf16, fp16"),
        ({"precision": "tf32"}, "TF32 needs an NVIDIA GPU, Ampere or newer. This machine has none."),
        ({"kv_cache": "paged"}, "no KV cache called 'paged'. What exists: none, dynamic, static"),
        ({"fusions": frozenset({"magic"})}, "no fusion called 'magic'"),
        ({"fusions": frozenset({"optimizer"})}, "fusion optimizer cannot be used here"),
    ],
)
def test_prepare_refuses_what_does_not_exist_or_cannot_run(
    changes: dict[str, object], message: str, machine: Machine, tiny_model: Callable[[str], GPT]
) -> None:
    model = tiny_model("llama")
    with pytest.raises(LeverError, match=message):
        prepare(model, question(machine, config=model.config, **changes), torch.device("cpu"))


def test_weights_are_counted_once_and_halved_by_16_bits(prepared: Prepare) -> None:
    plain = prepared("llama")
    assert plain.weight_bytes == 4 * plain.config.parameter_count
    assert prepared("llama", precision="bf16").weight_bytes == 2 * plain.config.parameter_count


@pytest.mark.usefixtures("pack_everything")
def test_packed_copies_are_counted_where_the_plain_weights_stay(
    prepared: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = prepared("llama").config
    matrix_bytes = 2 * (config.parameter_count - (2 * config.n_layer + 1) * config.d_model)
    tied_bytes = 2 * config.vocab_size * config.d_model
    packed = prepared("llama", "packed_linear", precision="bf16")
    # the embedding stays for looking tokens up, the output layer is a packed copy of it
    assert packed.weight_bytes == 2 * config.parameter_count + tied_bytes
    assert prepared("llama", "packed_linear").weight_bytes == 4 * config.parameter_count + 2 * tied_bytes
    if torch.backends.mkl.is_available():  # MKL keeps both forms of everything
        monkeypatch.setattr("gptscope.models.fusion.packed_linear.quickest", lambda *_shape: "mkl")
        in_fp32 = prepared("llama", "packed_linear")
        assert in_fp32.weight_bytes == 4 * config.parameter_count + 2 * matrix_bytes


def test_warnings_of_the_chosen_levers_are_kept(machine: Machine, tiny_model: Callable[[str], GPT]) -> None:
    model = tiny_model("llama")
    old = replace(machine, cpu_features=frozenset())
    context = question(old, config=model.config, precision="fp16")
    assert "no native FP16" in prepare(model, context, torch.device("cpu")).warnings[0]


def test_inference_keeps_no_gradients_and_training_does(prepared: Prepare) -> None:
    assert not any(parameter.requires_grad for parameter in prepared("llama", "qkv").model.parameters())
    assert all(parameter.requires_grad for parameter in prepared("llama", "qkv", workload="train").model.parameters())
