"""A greedy continuation with what each choice was made from, by plain or by speculative decoding."""

from dataclasses import dataclass

from torch import Tensor

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.decoding.speculative import SpeculativeSession
from gptscope.models.prepare import PreparedModel


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a model said."""

    token_ids: list[int]
    margins: list[float]
    """Gap between the best and the second-best logit at each token; NaN or infinite where they are."""


def continue_greedily(prepared: PreparedModel, prompt_1L: Tensor, new_tokens: int) -> Continuation:
    """Continue one prompt by its most likely tokens, decoding as the levers say.

    Args:
        prepared: The model with its levers.
        prompt_1L: The prompt.
        new_tokens: How many tokens to add, 1 or more.
    """
    capacity = prompt_1L.shape[1] + new_tokens
    ids: list[int] = []
    margins: list[float] = []
    if prepared.context.speculation == "none":
        session = DecodeSession(prepared, 1, capacity)
        for number in range(new_tokens):
            token_B = session.step() if number else session.prefill(prompt_1L)
            ids.append(int(token_B[0]))
            margins += margins_of(session.logits_BV)
        return Continuation(ids, margins)
    guessing = SpeculativeSession(prepared, capacity)
    while len(ids) < new_tokens:
        tokens_N = guessing.step(new_tokens - len(ids)) if ids else guessing.prefill(prompt_1L)
        ids += tokens_N.tolist()
        margins += margins_of(guessing.logits_NV)
    return Continuation(ids, margins)


def margins_of(logits_NV: Tensor) -> list[float]:
    """Gap between the best and the second-best logit of each row."""
    best_N2 = logits_NV.float().topk(2).values
    gaps: list[float] = (best_N2[:, 0] - best_N2[:, 1]).tolist()
    return gaps
