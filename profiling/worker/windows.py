"""The worker's side of the quality comparison: logits of windows of the evaluation text, and greedy continuations."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gptscope.models.decoding.greedy import continue_greedily
from gptscope.models.decoding.reader import Reader
from gptscope.models.loaders import Tokenizer
from gptscope.models.prepare import PreparedModel
from gptscope.profiling.channel import MAX_PAYLOAD_BYTES
from gptscope.profiling.records import ForcedGaps, GreedyTokens, Logits
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.output import Output

WINDOW_TOKENS = 512
MOST_WINDOWS = 16
LEAST_WINDOWS = 4
MOST_LOGITS = 1 << 28
"""All windows together: 1 GiB of float32, so that a large vocabulary is read in fewer windows."""
PROMPTS = 8
PROMPT_TOKENS = 32
LEAST_TOKENS = 64
"""A shorter text says nothing."""
UNKNOWN_MARGIN = -1.0


def split_windows(text: Tensor, size: int, most: int) -> list[Tensor]:
    """The text's beginning as windows of `size` tokens and the one behind them, their last target.

    Every token but the text's first is predicted once; the last window of a short text is as long as what is left.

    Args:
        text: `[N]`, two tokens or more.
        size: Tokens that are read at once.
        most: How many windows at most.
    """
    starts = range(0, len(text) - 1, size)
    return [text[start : start + size + 1] for start in starts[:most]]


class Examiner:
    """Answers the same questions about the same text, whatever the levers are.

    Args:
        prepared: The model with its levers.
        text: The evaluation text as token ids, `[N]`.
        tokenizer: For the texts of greedy tokens.
    """

    def __init__(self, prepared: PreparedModel, text: Tensor, tokenizer: Tokenizer) -> None:
        self._prepared, self._text, self._tokenizer = prepared, text, tokenizer
        if len(text) <= LEAST_TOKENS:
            raise RequestError(
                f"The evaluation text has only {len(text)} tokens for this model, and at least {LEAST_TOKENS + 1} are "
                "needed; give a longer text."
            )
        size = min(WINDOW_TOKENS, prepared.config.context_length)
        affordable = max(LEAST_WINDOWS, MOST_LOGITS // (size * prepared.config.vocab_size))
        self._windows = split_windows(text, size, min(MOST_WINDOWS, affordable))

    @property
    def windows(self) -> int:
        """How many windows the text has."""
        return len(self._windows)

    def send_window(self, index: int, output: Output) -> None:
        """Send the logits of every position of one window, in pieces."""
        self._check("window", index, self.windows)
        window = self._windows[index]
        targets = window[1:].tolist()
        logits_LV = self._forward(window[None, :-1])[0]
        vocab_size = logits_LV.shape[1]
        rows = MAX_PAYLOAD_BYTES // (4 * vocab_size)
        if rows == 0:
            raise RequestError(
                f"A vocabulary of {vocab_size} is too large for the quality comparison (262144 at most)."
            )
        for offset in range(0, len(targets), rows):
            piece_RV = logits_LV[offset : offset + rows].to("cpu", torch.float32).contiguous()
            record = Logits(
                window=index,
                windows=self.windows,
                vocab_size=vocab_size,
                targets=tuple(targets[offset : offset + rows]),
                offset_row=offset,
                text_tokens=len(self._text),
            )
            output.emit(record, piece_RV.numpy().astype("<f4", copy=False).tobytes())

    def continue_prompt(self, index: int, new_tokens: int, output: Output) -> None:
        """Continue one prompt greedily; send the tokens with the gap between the best two logits at each."""
        prompt_L, new_tokens = self._prompt(index, new_tokens)
        said = continue_greedily(self._prepared, prompt_L[None], new_tokens)
        output.emit(
            GreedyTokens(
                prompt=index,
                prompts=PROMPTS,
                token_ids=tuple(said.token_ids),
                margins=tuple(_finite(gap) for gap in said.margins),
                texts=tuple(self._tokenizer.decode([token]) for token in said.token_ids),
                prompt_text=self._tokenizer.decode(prompt_L.tolist()),
            )
        )

    def judge_tokens(self, index: int, new_tokens: int, token_ids: Sequence[int], output: Output) -> None:
        """Read another model's continuation of a prompt; send how far each token lies below this model's own choice.

        Raises:
            RequestError: There is no such prompt, or the continuation is not one of `new_tokens` at most.
        """
        prompt_L, new_tokens = self._prompt(index, new_tokens)
        if not 1 <= len(token_ids) <= new_tokens:
            raise RequestError(f"{len(token_ids)} tokens cannot be judged; 1 to {new_tokens} can.")
        reader = Reader(self._prepared, len(prompt_L) + len(token_ids))
        logits_NV = reader.read([*prompt_L.tolist(), *token_ids[:-1]])[-len(token_ids) :].float()
        given_N = logits_NV.gather(1, torch.tensor([list(token_ids)], device=logits_NV.device).T)[:, 0]
        gaps = (logits_NV.amax(dim=1) - given_N).tolist()
        output.emit(ForcedGaps(prompt=index, gaps=tuple(_finite(gap) for gap in gaps)))

    def _prompt(self, index: int, new_tokens: int) -> tuple[Tensor, int]:
        """A passage of the text and how many tokens may follow it."""
        self._check("prompt", index, PROMPTS)
        context = self._prepared.config.context_length
        new_tokens = min(new_tokens, max(1, context // 2))
        length = min(PROMPT_TOKENS, context - new_tokens)
        start = index * (len(self._text) - length) // PROMPTS
        return self._text[start : start + length], new_tokens

    @torch.inference_mode()
    def _forward(self, tokens_BL: Tensor) -> Tensor:
        """Logits of all positions, through the KV cache when there is one, as generation would compute them."""
        cache = self._prepared.new_cache(1, tokens_BL.shape[1])
        with self._prepared.autocast():
            return self._prepared.forward(tokens_BL.to(self._prepared.device), cache)

    @staticmethod
    def _check(what: str, index: int, count: int) -> None:
        if not 0 <= index < count:
            raise RequestError(f"There is no {what} {index} in the evaluation text; it has {count}.")


def _finite(gap: float) -> float:
    return gap if math.isfinite(gap) else UNKNOWN_MARGIN
