"""The bundled model is what its description says: small, loadable everywhere, honest about what it was trained on."""

import csv

import pytest
import torch
from tokenizers import Tokenizer

from gptscope.assets.bundled import bundled_folder, calibration_text, check, corpus, evaluation_text, export
from gptscope.models.gpt import GPT

EVALUATION_PERPLEXITY_BOUND = 47.4
"""Measured on 8 windows spread over the text, plus 3 %: see the table in SOURCES.md."""

MEASURED_WINDOWS = 8


@pytest.fixture(scope="module")
def loaded() -> tuple[GPT, Tokenizer]:
    """The bundled model in our decoder, FP32."""
    return export.read_folder(bundled_folder())


def evaluation_windows(tokenizer: Tokenizer) -> torch.Tensor:
    """The windows that the numbers in SOURCES.md are measured on."""
    windows = check.windows_of(evaluation_text().read_text(encoding="utf-8"), tokenizer, 512)
    return check.spread(windows, MEASURED_WINDOWS)


def test_folder_is_at_most_25_megabytes() -> None:
    assert sum(path.stat().st_size for path in bundled_folder().rglob("*") if path.is_file()) <= 25e6


def test_logits_agree_with_transformers(loaded: tuple[GPT, Tokenizer]) -> None:
    model, tokenizer = loaded
    windows = evaluation_windows(tokenizer)[:2]
    assert check.difference_to_transformers(bundled_folder(), model, windows) < 1e-4


def test_transformers_tokenizer_gives_the_same_tokens(loaded: tuple[GPT, Tokenizer]) -> None:
    from transformers import AutoTokenizer

    text = evaluation_text().read_text(encoding="utf-8")[:5000]
    theirs = AutoTokenizer.from_pretrained(bundled_folder())
    assert theirs(text)["input_ids"] == loaded[1].encode(text).ids
    assert theirs.decode(theirs(text)["input_ids"]) == text


def test_perplexity_on_unseen_text_stays_below_the_measured_bound(loaded: tuple[GPT, Tokenizer]) -> None:
    model, tokenizer = loaded
    assert check.perplexity(model, evaluation_windows(tokenizer)) < EVALUATION_PERPLEXITY_BOUND


def test_careless_int8_hurts_and_careful_int8_does_not(loaded: tuple[GPT, Tokenizer]) -> None:
    model, tokenizer = loaded
    windows = evaluation_windows(tokenizer)
    calibration = check.windows_of(calibration_text().read_text(encoding="utf-8"), tokenizer, 512)
    calibration = check.spread(calibration, MEASURED_WINDOWS)
    exact = check.perplexity(model, windows)
    assert check.perplexity(check.weight_only_int8(model), windows) < 1.005 * exact
    assert check.perplexity(check.naive_int8(model, calibration), windows) > 1.02 * exact


def test_greedy_continuation_is_words_not_a_loop(loaded: tuple[GPT, Tokenizer]) -> None:
    model, tokenizer = loaded
    words = check.greedy(model, tokenizer, check.PROMPTS[0], 48).split()
    assert len(set(words)) > len(words) / 3


def document(key: str) -> corpus.Document:
    """A stand-in for a document, since the packages are not there when tests run."""
    source, name = key.split("/")
    return corpus.Document(source, name, f"Text of {key}. More text.")


def test_split_puts_each_document_into_one_part_whatever_the_order() -> None:
    held_out = sorted(corpus.EVALUATION | corpus.VALIDATION)
    documents = [document(key) for key in [*held_out, *corpus.CALIBRATION, "sotu/1790_george_washington_n"]]
    parts = corpus.split(documents)
    assert {item.key for item in parts["evaluation"]} == corpus.EVALUATION
    assert {item.key for item in parts["validation"]} == corpus.VALIDATION
    assert sum(map(len, parts.values())) == len(documents)
    backwards = corpus.split(documents[::-1])
    assert {name: sorted(part) for name, part in parts.items()} == {name: sorted(p) for name, p in backwards.items()}


def test_split_refuses_packages_that_lack_a_held_out_document() -> None:
    with pytest.raises(ValueError, match="kjv/Ruth"):
        corpus.split([document(key) for key in (corpus.EVALUATION | corpus.VALIDATION) - {"kjv/Ruth"}])


def test_calibration_comes_from_the_training_side() -> None:
    assert all(corpus.split_of(key) == "train" for key in corpus.CALIBRATION)


def manifest() -> list[dict[str, str]]:
    """The rows of `documents.csv`, which training wrote: split, name, size and hash of every document."""
    with (bundled_folder() / "documents.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_manifest_agrees_with_the_split_function() -> None:
    rows = manifest()
    assert len(rows) == len({row["document"] for row in rows}) > 400
    assert all(row["split"] == corpus.split_of(row["document"]) for row in rows)


def test_evaluation_text_holds_the_evaluation_documents_and_no_training_document() -> None:
    rows = manifest()
    hashes = [corpus.hash_of(text) for text in corpus.documents_of(evaluation_text().read_text(encoding="utf-8"))]
    assert hashes == [row["sha256"] for row in rows if row["split"] == "evaluation"]
    assert not set(hashes) & {row["sha256"] for row in rows if row["split"] == "train"}


def test_overlap_counts_copied_passages_only() -> None:
    passage = "It was the best of times, it was the worst of times, it was the age of wisdom."
    other = "Call me Ishmael. Some years ago, never mind how long precisely, I thought I would sail."
    assert corpus.overlap([document("a/b")], [corpus.Document("a", "c", other)]) == 0
    assert corpus.overlap([corpus.Document("a", "b", passage)], [corpus.Document("a", "c", "So! " + passage)]) > 0.9


def test_cleaning_leaves_plain_text() -> None:
    raw = "\ufeffThank you. (Applause.)  It’s\tgood—“very good” .\r\n\r\n\r\nNext [Laughter] line"
    assert corpus.clean(raw) == 'Thank you. It\'s good--"very good".\n\nNext line'


def test_texts_have_the_promised_size() -> None:
    assert 100_000 <= evaluation_text().stat().st_size <= 200_000
    assert 90_000 <= calibration_text().stat().st_size <= 120_000
