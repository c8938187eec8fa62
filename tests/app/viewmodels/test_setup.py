import shlex

import pytest
from tests_app_streams import CAPABILITIES, MODEL

from gptscope.app.viewmodels import setup as vm
from gptscope.profiling.experiment import Experiment, Variant, Workload

ORDER = tuple(lever.name for lever in vm.levers_of(CAPABILITIES, "fusion"))


def test_unavailable_choices_carry_the_reason() -> None:
    found = {choice.name: choice for choice in vm.choices(CAPABILITIES, "precision", vm.SetupState())}
    assert found["tf32"].reason == "TF32 needs an NVIDIA GPU, Ampere or newer. This machine has none."
    assert found["bf16"].reason is None


def test_a_lever_of_another_workload_is_unavailable_and_says_for_which_it_works() -> None:
    found = {choice.name: choice for choice in vm.choices(CAPABILITIES, "fusion", vm.SetupState())}
    assert found["optimizer"].reason == "optimizer works for train only."
    assert "prefill, decode and generate" in str(
        {c.name: c for c in vm.choices(CAPABILITIES, "fusion", vm.SetupState(workload=Workload(kind="train")))}[
            "packed_linear"
        ].reason
    )


def test_all_takes_every_available_fusion_but_compile() -> None:
    assert vm.all_fusions(CAPABILITIES, "decode") == ("attention", "qkv", "mlp", "norm", "packed_linear")
    assert vm.all_fusions(CAPABILITIES, "train") == ("attention", "qkv", "mlp", "norm", "optimizer")


def test_switching_keeps_the_order_of_the_capabilities() -> None:
    state = vm.SetupState()
    for name in ("norm", "attention", "mlp"):
        state.toggle_fusion(name, on=True, order=ORDER)
    assert state.variant.fusions == ("attention", "mlp", "norm")
    state.toggle_fusion("attention", on=False, order=ORDER)
    assert state.variant.fusions == ("mlp", "norm")


def test_differences_count_levers_and_understand_all() -> None:
    fused = Variant(precision="bf16", fusions=("all",), kv_cache="static")
    assert vm.differences(fused, Variant(), ORDER) == (
        "precision",
        "attention",
        "qkv",
        "mlp",
        "norm",
        "packed_linear",
        "optimizer",
        "kv_cache",
    )
    assert vm.differences(Variant(), Variant(), ORDER) == ()
    state = vm.SetupState(variant=Variant(precision="bf16"))
    assert vm.differs_sentence(state, ORDER) == "1 lever differs from FP32 plain"
    assert vm.differs_sentence(vm.SetupState(), ORDER) == "Same as the baseline, FP32 plain"


def test_run_leaves_out_what_cannot_work_but_setup_remembers_it() -> None:
    state = vm.SetupState(variant=Variant(fusions=("attention", "optimizer")))
    assert state.experiment(CAPABILITIES).variants[0].fusions == ("attention",)
    assert state.variant.fusions == ("attention", "optimizer")
    state.set_workload(kind="train")
    assert state.experiment(CAPABILITIES).variants[0].fusions == ("attention", "optimizer")


def test_the_prompt_goes_with_generate_only() -> None:
    state = vm.SetupState(workload=Workload(kind="generate", prompt="Call me"))
    assert state.experiment(None).workload.prompt == "Call me"
    state.set_workload(kind="decode")
    assert state.experiment(None).workload.prompt is None


def test_impossible_numbers_are_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="batch is 0, but it must be 1 or more"):
        vm.SetupState().set_workload(batch=0)


def test_the_command_repeats_the_setting_and_survives_a_shell() -> None:
    variant = Variant(precision="bf16", fusions=("qkv", "norm"), kv_cache="static", threads=2)
    work = Workload(kind="generate", prompt="it's a “test”; rm -rf", new_tokens=9)
    words = shlex.split(vm.command_line(Experiment(model="my model", workload=work, variants=(variant,)), variant))
    assert words[:4] == ["gptscope", "run", "--model", "my model"]
    assert words[words.index("--fuse") + 1] == "qkv,norm"
    assert words[words.index("--prompt") + 1] == "it's a “test”; rm -rf"
    assert words[words.index("--threads") + 1] == "2"


def test_the_command_is_understood_by_the_command_line() -> None:
    from gptscope.app.cli.main import build_parser

    variant = Variant(precision="bf16", fusions=("qkv",), kv_cache="static")
    for kind in vm.WORKLOADS:
        experiment = Experiment(model="bundled", workload=Workload(kind=kind), variants=(variant,))
        parsed = build_parser().parse_args(shlex.split(vm.command_line(experiment, variant))[1:])
        assert parsed is not None


def test_model_facts_are_at_the_chosen_precision() -> None:
    facts = vm.model_facts(MODEL, "bf16", 269_030_016, 23_040)
    assert facts.shape == "Llama, 30 layers"
    assert facts.weights == "269 MB in BF16"
    assert facts.kv == "KV 23.0 kB per token"


def test_names_are_short() -> None:
    assert vm.title_of(Variant()) == "FP32 plain"
    assert vm.title_of(Variant(precision="bf16", fusions=("qkv",), kv_cache="static")) == "BF16, qkv, static KV"
