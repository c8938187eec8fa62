"""The worker's side of the quality comparison: logits of windows of the evaluation text, and greedy continuations."""

import math

import torch
from torch import Tensor

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.loaders import Tokenizer
from gptscope.models.prepare import PreparedModel
from gptscope.profiling.channel import MAX_PAYLOAD_BYTES
from gptscope.profiling.records import GreedyTokens, Logits
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.output import Output

WINDOW_TOKENS = 512
MOST_WINDOWS = 16
LEAST_WINDOWS = 4
MOST_LOGITS = 1 << 28
"""All windows together: 1 GiB of float32, so that a large vocabulary is read in fewer windows."""
PROMPTS = 5
PROMPT_TOKENS = 32
UNKNOWN_MARGIN = -1.0


class Examiner:
    """Answers the same questions about the same text, whatever the levers are.

    Args:
        prepared: The model with its levers.
        text: The evaluation text as token ids, `[N]`.
        tokenizer: For the texts of greedy tokens.
    """

    def __init__(self, prepared: PreparedModel, text: Tensor, tokenizer: Tokenizer) -> None:
        self._prepared, self._text, self._tokenizer = prepared, text, tokenizer
        self._size = min(WINDOW_TOKENS, prepared.config.context_length)
        affordable = max(LEAST_WINDOWS, MOST_LOGITS // (self._size * prepared.config.vocab_size))
        # Each window also needs the token behind it as its last target.
        self.windows = min(MOST_WINDOWS, affordable, (len(text) - 1) // self._size)
        if self.windows == 0:
            raise RequestError(
                f"The evaluation text has only {len(text)} tokens for this model, less than one window of {self._size}."
            )

    def send_window(self, index: int, output: Output) -> None:
        """Send the logits of every position of one window, in pieces."""
        self._check("window", index, self.windows)
        start = index * self._size
        tokens_L = self._text[start : start + self._size]
        targets = self._text[start + 1 : start + self._size + 1].tolist()
        logits_LV = self._forward(tokens_L[None])[0]
        vocab_size = logits_LV.shape[1]
        rows = MAX_PAYLOAD_BYTES // (4 * vocab_size)
        if rows == 0:
            raise RequestError(
                f"A vocabulary of {vocab_size} is too large for the quality comparison (262144 at most)."
            )
        for offset in range(0, self._size, rows):
            piece_RV = logits_LV[offset : offset + rows].to("cpu", torch.float32).contiguous()
            record = Logits(
                window=index,
                windows=self.windows,
                vocab_size=vocab_size,
                targets=tuple(targets[offset : offset + rows]),
                offset_row=offset,
            )
            output.emit(record, piece_RV.numpy().astype("<f4", copy=False).tobytes())

    def continue_prompt(self, index: int, new_tokens: int, output: Output) -> None:
        """Continue one prompt greedily; send the tokens with the gap between the best two logits at each."""
        self._check("prompt", index, PROMPTS)
        context = self._prepared.config.context_length
        new_tokens = min(new_tokens, max(1, context // 2))
        length = min(PROMPT_TOKENS, context - new_tokens)
        start = index * (len(self._text) - length) // PROMPTS
        prompt_1L = self._text[start : start + length][None]
        session = DecodeSession(self._prepared, 1, length + new_tokens)
        token_B = session.prefill(prompt_1L)
        ids, margins = [int(token_B[0])], [_margin(session.logits_BV)]
        for _ in range(new_tokens - 1):
            token_B = session.step()
            ids.append(int(token_B[0]))
            margins.append(_margin(session.logits_BV))
        texts = tuple(self._tokenizer.decode([token]) for token in ids)
        output.emit(
            GreedyTokens(prompt=index, prompts=PROMPTS, token_ids=tuple(ids), margins=tuple(margins), texts=texts)
        )

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


def _margin(logits_BV: Tensor) -> float:
    """Gap between the best and the second-best logit of the first sequence."""
    best = logits_BV[0].float().topk(2).values
    gap = float(best[0] - best[1])
    return gap if math.isfinite(gap) else UNKNOWN_MARGIN
