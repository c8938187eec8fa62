"""Where the text changes: every prompt with the first token at which baseline and candidate part."""

from dataclasses import dataclass
from typing import Literal

from gptscope.app.viewmodels import formatting as fmt
from gptscope.profiling.records import PromptComparison, Quality

Outcome = Literal["equal", "near_tie", "changed"]
LOOKS: dict[Outcome, tuple[str, str]] = {
    "equal": ("check", "good"),
    "near_tie": ("equals", "warn"),
    "changed": ("cross", "bad"),
}
"""Icon and tone of each outcome."""


@dataclass(frozen=True)
class PromptLine:
    """One prompt in the list."""

    title: str
    outcome: Outcome
    place: str
    """`exact`, `7` (first different token, from 1), `34, tie`."""
    spoken: str


@dataclass(frozen=True)
class Continuation:
    """One text in three parts: what both say, the first different token, the rest."""

    same: str
    token: str
    rest: str


@dataclass(frozen=True)
class Divergence:
    """One prompt in full."""

    prompt: str
    outcome: Outcome
    baseline: Continuation
    candidate: Continuation
    sentence: str
    """`token 7: margin 4.1, a real change (0.8 worse)`: to the baseline the candidate's token lies 0.8 logits lower."""


def prompt_lines(quality: Quality | None) -> tuple[PromptLine, ...]:
    """The list, in the order of the prompts."""
    return tuple(_line(prompt) for prompt in quality.prompts) if quality is not None else ()


def counts(quality: Quality | None) -> tuple[tuple[Outcome, str], ...]:
    """`2 exact`, `1 near-tie`, `9 changed`; what does not occur is left out."""
    outcomes = [prompt.outcome for prompt in quality.prompts] if quality is not None else []
    words: dict[Outcome, str] = {"equal": "exact", "near_tie": "near-tie", "changed": "changed"}
    return tuple(
        (outcome, f"{outcomes.count(outcome)} {word}") for outcome, word in words.items() if outcome in outcomes
    )


def _line(prompt: PromptComparison) -> PromptLine:
    title = " ".join(prompt.prompt.split()) or "(empty prompt)"
    at = prompt.equal + 1
    if prompt.outcome == "equal":
        return PromptLine(title, "equal", "exact", f"{title}: exact")
    if prompt.outcome == "near_tie":
        return PromptLine(title, "near_tie", f"{at}, tie", f"{title}: differs at token {at}, a near-tie")
    return PromptLine(title, "changed", str(at), f"{title}: changes at token {at}")


def first_changed(quality: Quality | None) -> int:
    """Which prompt to show first: the earliest real change, else the first prompt."""
    prompts = quality.prompts if quality is not None else ()
    changed = [(prompt.equal, index) for index, prompt in enumerate(prompts) if prompt.outcome == "changed"]
    return min(changed)[1] if changed else 0


def divergence(quality: Quality | None, index: int) -> Divergence | None:
    """One prompt with both texts."""
    if quality is None or not 0 <= index < len(quality.prompts):
        return None
    prompt = quality.prompts[index]
    return Divergence(
        prompt=prompt.prompt,
        outcome=prompt.outcome,
        baseline=_parts(prompt.baseline, prompt.equal),
        candidate=_parts(prompt.candidate, prompt.equal),
        sentence=_sentence(prompt, quality.near_tie_margin),
    )


def _parts(tokens: tuple[str, ...], equal: int) -> Continuation:
    token = tokens[equal] if equal < len(tokens) else ""
    return Continuation("".join(tokens[:equal]), token, "".join(tokens[equal + 1 :]))


def _sentence(prompt: PromptComparison, tie: float | None) -> str:
    if prompt.outcome == "equal":
        return f"All {len(prompt.baseline)} tokens are the same."
    margin = prompt.margins[prompt.equal] if prompt.equal < len(prompt.margins) else -1.0
    forced = prompt.forced_gaps[prompt.equal] if prompt.equal < len(prompt.forced_gaps) else -1.0
    said = f"token {prompt.equal + 1}: "
    said += f"margin {fmt.number(margin)}, " if margin >= 0 else ""
    said += "a near-tie" if prompt.outcome == "near_tie" else "a real change"
    if prompt.outcome == "changed" and forced >= 0 and (tie is None or forced > tie):
        said += f" ({fmt.number(forced)} worse)"
    return said
