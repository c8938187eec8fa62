"""What is wrong with a setting, before it is run."""

from pathlib import Path

import msgspec
import pytest
from tests_app_quality_streams import RICH_CAPABILITIES
from tests_app_streams import INSPECTED

from gptscope.app.viewmodels.setup import SetupState
from gptscope.app.viewmodels.setup_problems import problems
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import LeverOptionInfo

MODEL = INSPECTED.model
LIMIT = MODEL.context_length


def found(setup: SetupState) -> dict[str, str]:
    return problems(setup, MODEL, RICH_CAPABILITIES, lambda path: path.name == "there.txt")


def test_a_setting_as_it_comes_has_none() -> None:
    assert found(SetupState()) == {}
    assert problems(SetupState(), None, None) == {}


@pytest.mark.parametrize("kind", ["decode", "generate"])
def test_new_tokens_must_fit_behind_the_context(kind: str) -> None:
    setup = SetupState(workload=Workload(kind=kind, context=LIMIT - 10, new_tokens=11))  # type: ignore[arg-type]
    said = f"This model reads {LIMIT} tokens: after a context of {LIMIT - 10}, at most 10 new tokens fit."
    assert found(setup) == {"new_tokens": said}
    setup.set_workload(new_tokens=10)
    assert found(setup) == {}
    setup.set_workload(context=LIMIT)
    assert found(setup)["new_tokens"].endswith(f"after a context of {LIMIT}, no new token fits.")


def test_new_tokens_do_not_matter_where_none_are_written_or_a_prompt_sets_the_length() -> None:
    for work in (Workload(kind="prefill", new_tokens=10**6), Workload(kind="train", new_tokens=10**6)):
        assert found(SetupState(workload=work)) == {}
    prompted = Workload(kind="generate", context=LIMIT, new_tokens=9, prompt="Call me Ishmael.")
    assert found(SetupState(workload=prompted)) == {}


def test_a_text_to_compare_on_must_be_there_once_outputs_are_compared() -> None:
    setup = SetupState(text="/nowhere/text.txt", variant=Variant(precision="bf16"))
    assert found(setup) == {}
    setup.compare = True
    assert found(setup) == {"text": "There is no file /nowhere/text.txt."}
    setup.text = "/here/there.txt"
    assert found(setup) == {}


def test_files_of_levers_that_are_on_must_be_there() -> None:
    ranges = LeverOptionInfo(name="ranges", title="ranges", kind="file", default="", summary="A file.")
    levers = tuple(
        msgspec.structs.replace(lever, options=(ranges,)) if lever.name == "int8-dynamic" else lever
        for lever in RICH_CAPABILITIES.levers
    )
    capabilities = msgspec.structs.replace(RICH_CAPABILITIES, levers=levers)
    options: dict[str, dict[str, bool | int | float | str]] = {"int8-dynamic": {"ranges": "/nowhere/ranges.json"}}
    setup = SetupState(variant=Variant(precision="int8-dynamic", options=options))
    assert problems(setup, MODEL, capabilities) == {"int8-dynamic.ranges": "There is no file /nowhere/ranges.json."}
    assert problems(setup, MODEL, capabilities, Path.is_absolute) == {}
    setup.set_variant(precision="bf16")
    assert problems(setup, MODEL, capabilities) == {}


def test_a_lookup_that_could_never_guess_says_so() -> None:
    options = tuple(
        LeverOptionInfo(name=name, title=name, kind="whole", default=default, least=1, most=8, summary="Tokens.")
        for name, default in (("ngram", 3), ("shortest", 2))
    )
    levers = tuple(
        msgspec.structs.replace(lever, options=options) if lever.name == "prompt-lookup" else lever
        for lever in RICH_CAPABILITIES.levers
    )
    capabilities = msgspec.structs.replace(RICH_CAPABILITIES, levers=levers)
    setup = SetupState(variant=Variant(speculation="prompt-lookup", options={"prompt-lookup": {"shortest": 4}}))
    said = "No guess would ever be made: take at most 3, the number of tokens to match."
    assert problems(setup, MODEL, capabilities) == {"prompt-lookup.shortest": said}
    setup.set_variant(options={"prompt-lookup": {"shortest": 4, "ngram": 4}})
    assert problems(setup, MODEL, capabilities) == {}
