"""Impossible requests are refused before anything is loaded, with the numbers."""

import pytest
import torch

from gptscope.models.config import PRESETS
from gptscope.models.levers import LeverContext, LeverError
from gptscope.profiling import experiment
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.machine import facts
from gptscope.profiling.worker import request
from gptscope.profiling.worker.failures import NotEnoughMemoryError, RequestError
from gptscope.profiling.worker.judging import judge_variants
from gptscope.profiling.worker.request import (
    check_levers,
    check_memory,
    check_sizes,
    choose_device,
    choose_threads,
    to_lever_machine,
)

TINY = PRESETS["tiny"]
CPU = torch.device("cpu")


def test_the_names_that_stand_apart_from_the_levers_are_the_levers() -> None:
    assert tuple(request.RECIPES) == experiment.PRECISIONS
    assert tuple(request.FUSIONS) == experiment.FUSIONS
    assert tuple(request.KV_CACHES) == experiment.KV_CACHES
    assert tuple(request.PRUNINGS) == experiment.PRUNINGS
    assert tuple(request.SPECULATIONS) == experiment.SPECULATIONS


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (Variant(precision="int8-static", options={"int8-static": {"rows": 1}}), "int8-static has no option 'rows'"),
        (Variant(fusions=("optimizer",)), "The fusion optimizer cannot be used here: .* no part in the workload dec"),
        (Variant(pruning="3:4", name="mine"), "^mine: There is no pruning called '3:4'"),
    ],
)
def test_every_variant_is_judged_before_the_first_is_loaded(candidate: Variant, words: str) -> None:
    machine = facts.machine_info("cpu")
    asked = Experiment(model="preset:tiny", workload=Workload(), variants=(Variant(), candidate))
    with pytest.raises(LeverError, match=words):
        judge_variants(asked, machine)
    judge_variants(Experiment(model="preset:tiny", workload=Workload(), variants=(Variant(),)), machine)


def context(kit, **changes) -> LeverContext:
    values = {"machine": kit.machine, "config": TINY, "workload": "decode", "precision": "fp32"} | changes
    return LeverContext(**values)


@pytest.mark.parametrize(
    ("work", "prompt", "words"),
    [
        ({"kind": "train", "context": 257}, None, "context is 257 tokens, but tiny reads at most 256"),
        ({"kind": "prefill", "context": 300}, None, "at most 256. Take 256 or less"),
        ({"context": 200, "new_tokens": 57}, None, "257 tokens together.*Take 56 new tokens or less"),
        ({"context": 256, "new_tokens": 1}, None, "Take a shorter context"),
        ({"kind": "generate", "new_tokens": 100}, 200, "the prompt's 200 tokens and 100 new tokens are 300"),
        ({"kind": "generate", "new_tokens": 1}, 256, "Take a shorter prompt"),
        ({"batch": 2_000_000}, None, "batch is 2000000"),
    ],
)
def test_sizes_that_do_not_fit(work, prompt, words):
    with pytest.raises(RequestError, match=words):
        check_sizes(Workload(**work), prompt, TINY, "tiny")


@pytest.mark.parametrize(
    ("work", "prompt"),
    [
        ({"kind": "train", "context": 256}, None),
        ({"kind": "prefill", "context": 256, "new_tokens": 9999}, None),
        ({"context": 200, "new_tokens": 56}, None),
        ({"kind": "generate", "context": 9999, "new_tokens": 56}, 200),
    ],
)
def test_sizes_that_just_fit(work, prompt):
    check_sizes(Workload(**work), prompt, TINY, "tiny")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"precision": "fp12"}, "no precision called 'fp12'. What exists: fp32"),
        ({"precision": "tf32"}, "precision tf32 cannot be used here"),
        ({"kv_cache": "paged"}, "no KV cache called 'paged'"),
    ],
)
def test_levers_that_do_not_exist_or_are_not_available(kit, changes, words):
    with pytest.raises(LeverError, match=words):
        check_levers(context(kit, **changes))


def test_training_asks_for_no_kv_cache(kit):
    check_levers(context(kit, workload="train", kv_cache="dynamic"))


def test_a_model_larger_than_memory_is_refused_with_the_numbers(kit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(facts, "memory_available_bytes", lambda: 5_000_000_000)
    config = PRESETS["gpt2-1.5b"]
    ask = context(kit, config=config, workload="train")
    with pytest.raises(NotEnoughMemoryError, match=r"about 2\d\.\d GB .*weights 6\.2 GB.*only 5\.0 GB of memory"):
        check_memory(config, Workload(kind="train", context=128), ask, CPU, "gpt2-1.5b")
    half = context(kit, config=config, precision="bf16")
    assert check_memory(config, Workload(), half, CPU, "gpt2-1.5b").total < 5_000_000_000


def test_auto_is_the_cpu_without_cuda_and_cuda_gives_a_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == CPU
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RequestError, match="built without CUDA"):
        choose_device("cuda")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(request.facts, "find_gpu", lambda: "No NVIDIA driver answers (x).")
    with pytest.raises(RequestError, match="No NVIDIA driver answers"):
        choose_device("cuda")


def test_threads_come_from_the_variant_then_the_environment_then_the_cores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert choose_threads(Variant(threads=7)) == 7
    assert choose_threads(Variant()) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    assert choose_threads(Variant()) == facts.physical_cores()
    with pytest.raises(RequestError, match="threads is 0"):
        choose_threads(Variant(threads=0))


def test_levers_see_the_machine_as_it_is():
    info = facts.machine_info(check_compiler=False)
    machine = to_lever_machine(info)
    assert (machine.device, machine.cores, machine.compiler) == ("cpu", info.physical_cores, None)
    assert machine.cpu_features == frozenset(info.cpu_features)
