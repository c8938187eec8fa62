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


def test_settings_are_told_in_few_words() -> None:
    tensor = Variant(precision="int8-dynamic", options={"int8-dynamic": {"granularity": "tensor"}})
    assert vm.title_of(tensor) == "INT8 dynamic, granularity tensor"
    many = {"granularity": "tensor", "keep": "a.b+c.d", "head": False, "clipping": "minmax"}
    assert vm.title_of(Variant(precision="int8-static", options={"int8-static": many})) == (
        "INT8 static, clipping minmax, 3 more"
    )
    kept = Variant(precision="int8-dynamic", fusions=("qkv",), options={"int8-dynamic": {"keep": "a.b+c.d"}})
    assert vm.title_of(kept) == "INT8 dynamic, qkv, dynamic KV, keeps 2"
    assert vm.title_of(Variant(pruning="heads", speculation="prompt-lookup")) == "FP32, heads, prompt-lookup"


def test_settings_of_levers_that_are_off_do_not_count() -> None:
    left = Variant(precision="bf16", options={"int8-dynamic": {"granularity": "tensor"}})
    assert vm.title_of(left) == "BF16 plain"
    assert vm.differences(left, Variant(precision="bf16"), ORDER) == ()
    assert vm.SetupState(variant=left).experiment(None).variants[0].options == {}


def test_a_changed_setting_is_a_difference_of_its_lever() -> None:
    ours = Variant(precision="int8-dynamic", options={"int8-dynamic": {"granularity": "tensor"}})
    assert vm.differences(ours, Variant(precision="int8-dynamic"), ORDER) == ("precision",)
    assert vm.differences(Variant(pruning="heads", model="x"), Variant(), ORDER) == ("pruning", "model")


def test_comparing_outputs_runs_the_baseline_too() -> None:
    state = vm.SetupState(variant=Variant(precision="int8-dynamic"), compare=True, layer_map=True)
    experiment = state.experiment(CAPABILITIES)
    assert [variant.precision for variant in experiment.variants] == ["fp32", "int8-dynamic"]
    assert experiment.quality
    assert experiment.layer_map
    state.variant = Variant()
    assert state.compare_reason(CAPABILITIES) == "This variant is the baseline, FP32 plain: change a lever first."
    assert len(state.experiment(CAPABILITIES).variants) == 1


def test_training_compares_loss_curves_only() -> None:
    state = vm.SetupState(
        variant=Variant(precision="bf16"), compare=True, layer_map=True, workload=Workload(kind="train")
    )
    experiment = state.experiment(CAPABILITIES)
    assert len(experiment.variants) == 2
    assert not experiment.quality
    assert not experiment.layer_map


def test_the_comparing_command_is_understood_by_the_command_line() -> None:
    from gptscope.app.cli.compare import variants_from
    from gptscope.app.cli.main import build_parser

    ours = Variant(
        precision="int8-dynamic", fusions=("qkv", "norm"), options={"int8-dynamic": {"keep": "a.b, c.d", "head": False}}
    )
    work = Workload(kind="decode")
    experiment = Experiment(
        model="bundled", workload=work, variants=(Variant(), ours), quality=True, layer_map=True, text="/my text.txt"
    )
    parsed = build_parser().parse_args(shlex.split(vm.command_line(experiment, ours))[1:])
    _, again = variants_from(parsed)
    assert (str(parsed.text), parsed.layer_map, parsed.no_quality) == ("/my text.txt", True, False)
    assert again.fusions == ("qkv", "norm")
    assert again.options == {"int8-dynamic": {"keep": "a.b+ c.d", "head": "false"}}
