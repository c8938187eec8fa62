"""Tokens are the same for the same seed, and streamed text is never half a character."""

from pathlib import Path

import pytest
import torch

from gptscope.profiling.worker import texts
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.texts import TextStream, TokenSource, read_text


@pytest.fixture
def short_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    text = "A whale is a fish with a horizontal tail. "
    file = tmp_path / "eval.txt"
    file.write_text(text)
    monkeypatch.setattr(texts, "evaluation_text", lambda: file)
    return text


def test_without_tokenizer_ids_are_seeded_and_in_the_vocabulary():
    one = TokenSource(None, 50, 1)
    batch = one.training_batch(3, 4, 100)
    assert batch.shape == (4, 100)
    assert 0 <= batch.min() <= batch.max() < 50
    assert torch.equal(batch, TokenSource(None, 50, 1).training_batch(3, 4, 100))
    assert not torch.equal(batch, one.training_batch(4, 4, 100))
    assert not torch.equal(batch, TokenSource(None, 50, 2).training_batch(3, 4, 100))


def test_a_batch_does_not_depend_on_the_batches_before(kit, short_text):
    used = TokenSource(kit.letters(), 256, 1)
    for number in range(5):
        used.training_batch(number, 2, 8)
    fresh = TokenSource(kit.letters(), 256, 1)
    assert torch.equal(used.training_batch(7, 2, 8), fresh.training_batch(7, 2, 8))


def test_a_context_is_passages_of_the_text_beginning_with_its_beginning(kit, short_text):
    context = TokenSource(kit.letters(), 256, 1).beginning(2, 10)
    assert bytes(context[0].tolist()).decode() == short_text[:10]
    assert bytes(context[1].tolist()).decode() in short_text
    assert not torch.equal(context[0], context[1])


def test_a_text_that_is_too_short_is_repeated(kit, short_text):
    context = TokenSource(kit.letters(), 256, 1).beginning(1, 100)
    assert bytes(context[0].tolist()).decode() == (short_text * 3)[:100]


def test_training_windows_lie_inside_the_text(kit, short_text):
    batch = TokenSource(kit.letters(), 256, 9).training_batch(0, 50, 12)
    assert all(bytes(row).decode() in short_text for row in batch.tolist())


def test_a_prompt_without_tokenizer_or_without_words_is_refused(kit):
    with pytest.raises(RequestError, match="no tokenizer"):
        TokenSource(None, 50, 1).prompt_ids("hello")
    with pytest.raises(RequestError, match="empty"):
        TokenSource(kit.letters(), 256, 1).prompt_ids("")


def test_streamed_pieces_are_the_whole_text_and_never_half_a_character(kit):
    text = "naïve café → 鯨 🐋 end"
    stream = TextStream(kit.letters())
    pieces = [stream.add([token]) for token in kit.letters().encode(text)]
    assert "".join(pieces) == text
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)
    assert "" in pieces


def test_what_is_left_at_the_end_is_shown_even_if_it_is_half_a_character(kit):
    stream = TextStream(kit.letters())
    assert stream.add([ord("a"), 0xC3]) == ""
    assert stream.rest() == "a\N{REPLACEMENT CHARACTER}"
    assert stream.rest() == ""


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"\xff\xfe\x00", "is no UTF-8 text"), (b" \n", "holds no text"), (None, "cannot be read: No such file")],
)
def test_files_that_are_no_text_are_refused(tmp_path, content, says):
    path = tmp_path / "mine.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RequestError, match=says):
        read_text(str(path))


def test_a_text_file_is_read_as_utf8(tmp_path):
    (tmp_path / "mine.txt").write_text("Été à Paris", encoding="utf-8")
    assert read_text(str(tmp_path / "mine.txt")) == "Été à Paris"
