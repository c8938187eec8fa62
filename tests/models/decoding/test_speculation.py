"""Guessed tokens change how many steps a text takes, never the text."""

from collections.abc import Callable, Sequence

import pytest
import torch

from gptscope.models.decoding.drafters import LookupDrafter, ModelDrafter
from gptscope.models.decoding.session import DecodeSession
from gptscope.models.decoding.speculation import SPECULATIONS
from gptscope.models.decoding.speculative import SpeculativeSession
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, Machine, ProfileFacts
from gptscope.models.prepare import LeverError, PreparedModel, prepare

Prepare = Callable[..., PreparedModel]
NEW = 30


def plain_text(model: PreparedModel, prompt_1L: torch.Tensor, new: int = NEW) -> list[int]:
    session = DecodeSession(model, 1, prompt_1L.shape[1] + new)
    return [int(session.prefill(prompt_1L))] + [int(session.step()) for _ in range(new - 1)]


def guessed_text(model: PreparedModel, prompt_1L: torch.Tensor, new: int = NEW) -> list[int]:
    session = SpeculativeSession(model, prompt_1L.shape[1] + new)
    text = session.prefill(prompt_1L).tolist()
    while len(text) < new:
        text += session.step(new - len(text)).tolist()
    return text


@pytest.fixture
def repeating_1L() -> torch.Tensor:  # noqa: N802
    """A prompt that repeats itself, so that lookups find something."""
    return torch.tensor([[5, 9, 3, 7, 5, 9, 3, 7, 5, 9, 3, 7, 5, 9]])


@pytest.mark.parametrize("kv_cache", ["none", "dynamic", "static"])
def test_prompt_lookup_gives_the_text_of_plain_decoding(
    kv_cache: str, family: str, prepared: Prepare, repeating_1L: torch.Tensor
) -> None:
    expected = plain_text(prepared(family, kv_cache=kv_cache), repeating_1L)
    model = prepared(family, kv_cache=kv_cache, speculation="prompt-lookup", options={"prompt-lookup": {"shortest": 1}})
    assert guessed_text(model, repeating_1L) == expected
    counters = model.counters()
    assert counters["drafted_tokens"] > 0
    assert counters["decode_forwards"] + counters["accepted_tokens"] == NEW - 1
    if kv_cache != "none":
        assert counters["tokens_per_forward"] == 1  # guesses apart


@pytest.mark.parametrize("kv_cache", ["none", "dynamic", "static"])
@pytest.mark.parametrize("draft", ["llama", "qwen2"])
def test_a_draft_model_gives_the_text_of_plain_decoding(
    draft: str, kv_cache: str, machine: Machine, tiny_model: Callable[[str], GPT], repeating_1L: torch.Tensor
) -> None:
    context = LeverContext(
        machine=machine, config=None, workload="decode", precision="fp32", kv_cache=kv_cache, speculation="draft-model"
    )
    model = prepare(tiny_model("llama"), context, torch.device("cpu"), draft=tiny_model(draft))
    plain = prepare(tiny_model("llama"), LeverContext(
        machine=machine, config=None, workload="decode", precision="fp32"), torch.device("cpu"))  # fmt: skip
    assert guessed_text(model, repeating_1L) == plain_text(plain, repeating_1L)
    counters = model.counters()
    if draft == "llama":  # it guesses for itself, so every guess is right
        assert counters["accepted_tokens"] == counters["drafted_tokens"] > 0
        assert counters["decode_forwards"] < NEW / 4
    else:
        assert counters["accepted_tokens"] < counters["drafted_tokens"]


def test_no_more_tokens_come_than_are_wanted(prepared: Prepare, repeating_1L: torch.Tensor) -> None:
    model = prepared("llama", speculation="prompt-lookup", options={"prompt-lookup": {"shortest": 1, "drafts": 32}})
    for most in (1, 2, 5):
        session = SpeculativeSession(model, 40)
        session.prefill(repeating_1L)
        assert 1 <= len(session.step(most)) <= most
        assert session.drafted < most


def test_a_text_longer_than_the_context_is_refused(prepared: Prepare) -> None:
    with pytest.raises(ValueError, match=r"65 tokens .* do not fit into this model's context of 64"):
        SpeculativeSession(prepared("llama", speculation="prompt-lookup"), 65)


@pytest.mark.parametrize(
    ("text", "ngram", "guess"),
    [
        ([1, 2, 3, 4, 1, 2], 2, [3, 4, 1]),
        ([1, 2, 8, 9, 2, 7, 1, 2], 2, [8, 9, 2]),  # the longer run wins over the later one
        ([1, 2, 8, 9, 2, 7, 1, 2], 1, [7, 1, 2]),  # the latest place wins
        ([1, 2, 3], 3, []),
        ([4, 4, 4], 3, [4]),
        ([], 3, []),
    ],
)
def test_a_lookup_continues_the_last_place_with_the_longest_run(
    text: list[int], ngram: int, guess: Sequence[int]
) -> None:
    assert LookupDrafter(ngram).propose(text, 3) == guess


def test_runs_shorter_than_the_shortest_are_not_looked_up() -> None:
    assert LookupDrafter(3, 2).propose([1, 2, 8, 1], 3) == []
    assert LookupDrafter(3, 2).propose([1, 2, 8, 1, 2], 3) == [8, 1, 2]


def test_a_lookup_forgets_a_text_that_is_gone() -> None:
    drafter = LookupDrafter(2)
    drafter.propose([1, 2, 3, 1, 2], 2)
    assert drafter.propose([7, 1, 2], 2) == []


def test_a_draft_model_drops_guesses_that_were_wrong(prepared: Prepare, repeating_1L: torch.Tensor) -> None:
    text = repeating_1L[0].tolist()
    drafter, fresh = (ModelDrafter(prepared("llama", kv_cache="static"), 60) for _ in range(2))
    drafter.propose(text, 5)
    longer = [*text, 1, 2]
    assert drafter.propose(longer, 5) == fresh.propose(longer, 5)
    assert drafter.propose(text, 0) == []


def test_more_than_one_sequence_is_refused_with_the_reason(machine: Machine) -> None:
    context = LeverContext(machine=machine, config=None, workload="decode", precision="fp32", batch=4)
    for lever in SPECULATIONS.values():
        assert "works on one sequence" in str(lever.unavailable_reason(context))


def test_a_draft_model_of_another_vocabulary_is_refused(prepared: Prepare) -> None:
    with pytest.raises(LeverError, match=r"knows \d+ tokens and this model 97, so they have different tokenizers"):
        prepared("llama", speculation="draft-model")  # the default drafter is the bundled model


def test_a_draft_model_that_does_not_exist_is_refused(prepared: Prepare) -> None:
    with pytest.raises(LeverError, match=r"The draft model nowhere\.gguf cannot be used"):
        prepared("llama", speculation="draft-model", options={"draft-model": {"model": "nowhere.gguf"}})


@pytest.mark.parametrize(
    ("drafted", "accepted", "in_effect", "says"),
    [
        (0.0, 0.0, False, "No token was guessed"),
        (12.0, 0.0, False, "None of 12 guessed tokens was accepted"),
        (12.0, 6.0, True, "6 of 12 guessed tokens were accepted (50%): 1.75 tokens per step."),
    ],
)
def test_a_speculation_that_guesses_nothing_right_is_caught(
    drafted: float, accepted: float, in_effect: bool, says: str, machine: Machine
) -> None:
    context = LeverContext(machine=machine, config=None, workload="decode", precision="fp32")
    counters = {"decode_forwards": 8.0, "drafted_tokens": drafted, "accepted_tokens": accepted}
    facts = ProfileFacts(kernels=[], steps=8, n_layer=2, workload="decode", device="cpu", counters=counters)
    for lever in SPECULATIONS.values():
        evidence = lever.evidence(facts, context)
        assert evidence.in_effect is in_effect
        assert says in evidence.sentence
