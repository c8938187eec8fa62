"""The logits that are sent are the model's, whatever the cache; greedy margins belong to their tokens."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from gptscope.assets.bundled import bundled_folder
from gptscope.models.levers import LeverContext
from gptscope.models.loaders import load_model
from gptscope.models.prepare import prepare
from gptscope.profiling.channel import MAX_PAYLOAD_BYTES
from gptscope.profiling.quality.comparison import QualityComparison
from gptscope.profiling.quality.rows import LogitWindow
from gptscope.profiling.records import ForcedGaps, GreedyTokens, Logits
from gptscope.profiling.worker import windows
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.texts import TokenSource
from gptscope.profiling.worker.windows import Examiner


def examiner(kit, *, tokens=1000, **levers) -> Examiner:
    config = dataclasses.replace(kit.tiny, vocab_size=128, context_length=64)
    text = torch.randint(0, 128, (tokens,), generator=torch.Generator().manual_seed(2))
    return Examiner(kit.prepared(config=config, **levers), text, kit.letters())


def window_of(kit, one: Examiner, index: int):
    output = kit.collected()
    one.send_window(index, output)
    records = output.of(Logits)
    rows = np.concatenate(
        [np.frombuffer(payload, "<f4").reshape(-1, record.vocab_size) for record, payload in output.sent]
    )
    return records, rows


@pytest.mark.parametrize("kv_cache", ["none", "dynamic", "static"])
def test_a_window_is_the_models_logits_and_the_true_next_tokens(kit, kv_cache):
    one = examiner(kit, kv_cache=kv_cache)
    records, rows = window_of(kit, one, 3)
    start = 3 * 64
    with torch.no_grad():
        expected = one._prepared.model(one._text[None, start : start + 64])[0]
    np.testing.assert_allclose(rows, expected.numpy(), atol=1e-5)
    assert [target for record in records for target in record.targets] == one._text[start + 1 : start + 65].tolist()


def test_pieces_fit_into_frames_and_say_where_they_belong(kit, monkeypatch):
    monkeypatch.setattr(windows, "MAX_PAYLOAD_BYTES", 4 * 128 * 10)
    records, rows = window_of(kit, examiner(kit), 0)
    assert [record.offset_row for record in records] == [0, 10, 20, 30, 40, 50, 60]
    assert rows.shape == (64, 128)
    assert MAX_PAYLOAD_BYTES >= 4 * 128 * 10


def test_bf16_logits_are_sent_as_float32(kit):
    _, rows = window_of(kit, examiner(kit, precision="bf16"), 0)
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()


@pytest.mark.parametrize(
    ("tokens", "sizes"),
    [(65, [64]), (66, [64, 1]), (128, [64, 63]), (129, [64, 64]), (150, [64, 64, 21]), (100_000, [64] * 16)],
)
def test_every_token_but_the_first_is_predicted_once_in_at_most_sixteen_windows(kit, tokens, sizes):
    one = examiner(kit, tokens=tokens)
    targets = []
    for index in range(one.windows):
        records, rows = window_of(kit, one, index)
        found = [target for record in records for target in record.targets]
        assert len(found) == len(rows) == sizes[index]
        targets += found
    assert one.windows == len(sizes)
    assert targets == one._text[1 : 1 + sum(sizes)].tolist()


def test_a_large_vocabulary_is_read_in_fewer_windows(kit, monkeypatch):
    monkeypatch.setattr(windows, "MOST_LOGITS", 64 * 128 * 7)
    assert examiner(kit, tokens=100_000).windows == 7


def test_a_text_without_one_window_and_a_window_that_is_not_there_are_refused(kit):
    with pytest.raises(RequestError, match="only 64 tokens for this model, and at least 65 are needed"):
        examiner(kit, tokens=64)
    with pytest.raises(RequestError, match="no window 16"):
        examiner(kit).send_window(16, kit.collected())


def greedy(kit, one: Examiner, prompt: int = 1) -> GreedyTokens:
    output = kit.collected()
    one.continue_prompt(prompt, 10, output)
    (tokens,) = output.of(GreedyTokens)
    return tokens


def test_margins_are_the_gap_of_the_best_two_logits_at_each_token(kit):
    one = examiner(kit)
    tokens = greedy(kit, one)
    start = 1 * (1000 - 32) // windows.PROMPTS
    ids = one._text[start : start + 32].tolist()
    for token, margin in zip(tokens.token_ids, tokens.margins, strict=True):
        with torch.no_grad():
            best = one._prepared.model(torch.tensor([ids]))[0, -1].topk(2)
        assert token == int(best.indices[0])
        assert margin == pytest.approx(float(best.values[0] - best.values[1]), abs=1e-5)
        ids.append(token)
    assert "".join(tokens.texts) == kit.letters().decode(list(tokens.token_ids))


def test_continuations_do_not_depend_on_the_cache(kit):
    assert (
        greedy(kit, examiner(kit, kv_cache="static")).token_ids == greedy(kit, examiner(kit, kv_cache="none")).token_ids
    )


def test_broken_logits_have_an_unknown_margin(kit):
    one = examiner(kit)
    with torch.no_grad():
        one._prepared.model.norm.weight.fill_(float("nan"))
    assert set(greedy(kit, one).margins) == {windows.UNKNOWN_MARGIN}


def test_another_models_text_is_judged_token_by_token(kit):
    one, output = examiner(kit), kit.collected()
    start = 1 * (1000 - 32) // windows.PROMPTS
    prompt = one._text[start : start + 32].tolist()
    given = [3, 77, 12]
    one.judge_tokens(1, 10, given, output)
    (gaps,) = output.of(ForcedGaps)
    assert gaps.prompt == 1
    for number, gap in enumerate(gaps.gaps):
        with torch.no_grad():
            logits_V = one._prepared.model(torch.tensor([[*prompt, *given[:number]]]))[0, -1]
        assert gap == pytest.approx(float(logits_V.max() - logits_V[given[number]]), abs=1e-5)


@pytest.mark.parametrize("kv_cache", ["none", "static"])
def test_a_models_own_text_is_its_own_choice(kit, kv_cache):
    one, output = examiner(kit, kv_cache=kv_cache), kit.collected()
    one.judge_tokens(1, 10, greedy(kit, one).token_ids, output)
    assert max(output.of(ForcedGaps)[0].gaps) < 1e-4


def test_a_continuation_that_is_too_long_to_judge_is_refused(kit):
    with pytest.raises(RequestError, match="11 tokens cannot be judged; 1 to 10 can"):
        examiner(kit).judge_tokens(0, 10, [1] * 11, kit.collected())


def test_guessing_changes_no_continuation(kit):
    plain = greedy(kit, examiner(kit))
    guessed = greedy(kit, examiner(kit, speculation="prompt-lookup", options={"prompt-lookup": {"shortest": 1}}))
    assert guessed.token_ids == plain.token_ids
    assert guessed.margins == pytest.approx(plain.margins, abs=1e-4)
    assert plain.prompt_text


@pytest.mark.parametrize(("tokens", "sizes"), [(None, [512, 512, 512]), (1200, [512, 512, 175]), (300, [299])])
def test_perplexity_is_that_of_transformers_on_the_same_windows(kit, monkeypatch, tokens, sizes):
    """Also where the last window is short: its tokens weigh as much as all others."""
    import transformers

    monkeypatch.setattr(windows, "MOST_WINDOWS", 3)
    loaded = load_model("bundled")
    context = LeverContext(machine=kit.machine, config=loaded.model.config, workload="decode", precision="fp32")
    source = TokenSource(loaded.tokenizer, loaded.model.config.vocab_size, 1)
    text_N = source.text_ids[:tokens]
    one = Examiner(prepare(loaded.model, context, torch.device("cpu")), text_N, loaded.tokenizer)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(bundled_folder(), dtype=torch.float32).eval()
    comparison, nats = QualityComparison("c", "b"), 0.0
    for index, size in enumerate(sizes):
        output, window = kit.collected(), LogitWindow()
        one.send_window(index, output)
        for record, payload in output.sent:
            window.add(record, payload)
        for record, payload in output.sent:
            comparison.add_piece(window, record, payload)
        assert sum(len(record.targets) for record in output.of(Logits)) == size
        ids_1L = text_N[None, index * 512 : index * 512 + size + 1]
        with torch.no_grad():
            nats += size * float(theirs(ids_1L, labels=ids_1L).loss)
    assert one.windows == len(sizes)
    result = comparison.result()
    assert result.tokens == sum(sizes)
    assert result.text_tokens == len(text_N)
    assert math.log(result.perplexity) == pytest.approx(nats / sum(sizes), abs=1e-3)
    assert result.perplexity == pytest.approx(math.exp(nats / sum(sizes)), rel=1e-3)
