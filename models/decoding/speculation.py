"""Levers that guess several tokens cheaply, for the model to check in one step. Greedy text stays the same.

A step reads its last token and the guesses behind it at once, which costs hardly more than one token while weights are
what takes the time. Guesses are kept as far as each is the model's own choice, so the text is what plain decoding
gives, apart from near-ties that a product over several rows may round the other way.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

from gptscope.models.levers import Evidence, Lever, LeverContext, LeverOption, OptionValue, ProfileFacts, WorkloadKind

DRAFT_TIME_SHARE = "draft_time_share"
"""Counter: of all kernel time, how much a draft model took, 0 to 1."""


class Drafter(Protocol):
    """Guesses how a text goes on."""

    def propose(self, text: Sequence[int], most: int) -> list[int]:
        """At most `most` tokens that may follow `text`; none when there is nothing to go by."""


class Speculation(Lever):
    """One way to guess."""

    group = "speculation"
    workloads: ClassVar[tuple[WorkloadKind, ...]] = ("decode", "generate")
    drafts = LeverOption(
        name="drafts",
        title="Guesses per step",
        kind="whole",
        default=6,
        summary="At most so many tokens are guessed for each step to check.",
        least=1,
        most=32,
    )

    def unavailable_reason(self, context: LeverContext) -> str | None:
        if context.workload in self.workloads and context.batch > 1:
            return (
                f"{self.title} works on one sequence: with a batch of {context.batch} each sequence would accept "
                "another number of guesses. Take batch 1."
            )
        return super().unavailable_reason(context)

    def draft_source(self, context: LeverContext) -> str | None:
        """Where the weights of a second model come from that guesses; None: guessing needs none."""
        del context
        return None

    @abstractmethod
    def settings_of(self, values: dict[str, OptionValue]) -> str:
        """The settings in words, for the evidence."""

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        steps = facts.counters.get("decode_forwards", 0.0)
        drafted = facts.counters.get("drafted_tokens", 0.0)
        accepted = facts.counters.get("accepted_tokens", 0.0)
        how = self.settings_of(self.settings(context))
        if not steps:
            return self.cannot_tell("No decode steps were counted, so guesses cannot be seen.")
        if not drafted:
            return self.not_shown(f"No token was guessed in {steps:.0f} steps ({how}): no effect.")
        if not accepted:
            return self.not_shown(f"None of {drafted:.0f} guessed tokens was accepted ({how}): no effect.")
        share = facts.counters.get(DRAFT_TIME_SHARE)
        took = "" if share is None else f" Guessing took {share:.0%} of the kernel time."
        return self.shown(
            f"{accepted:.0f} of {drafted:.0f} guessed tokens were accepted ({accepted / drafted:.0%}): "
            f"{1 + accepted / steps:.2f} tokens per step.{took}"
        )


class PromptLookup(Speculation):
    """Guess from the text itself (Saxena 2023, "Prompt Lookup Decoding")."""

    name = "prompt-lookup"
    title = "Prompt lookup"
    summary = (
        "Guesses that what followed the last few tokens before follows them again. Costs nothing; helps where the "
        "text repeats itself, as in summaries, edits and code."
    )
    options = (
        LeverOption(
            name="ngram",
            title="Tokens to match",
            kind="whole",
            default=3,
            summary="The longest run of last tokens that is looked up; shorter ones are tried after it.",
            least=1,
            most=8,
        ),
        LeverOption(
            name="shortest",
            title="At least to match",
            kind="whole",
            default=2,
            summary="The shortest run that is looked up: with 1 there are more guesses, and more of them are wrong.",
            least=1,
            most=8,
        ),
        Speculation.drafts,
    )

    def settings_of(self, values: dict[str, OptionValue]) -> str:
        return f"runs of {values['shortest']} to {values['ngram']} tokens looked up"


class DraftModel(Speculation):
    """Guess with a smaller model (Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding").

    The vocabulary's size is compared here; whether the same text gives the same tokens, once both are loaded.
    """

    name = "draft-model"
    title = "Draft model"
    summary = (
        "A smaller model of the same tokenizer writes ahead, this one checks. Helps when the small one is several "
        "times faster and often right."
    )
    options = (
        LeverOption(
            name="model",
            title="Draft model",
            kind="text",
            default="bundled",
            summary="Where the smaller model comes from, as for --model.",
        ),
        Speculation.drafts,
    )

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.config is None:
            return None
        from gptscope.models.loaders import ModelError, describe_model

        source = self.draft_source(context)
        try:
            draft = describe_model(source)
        except ModelError as error:
            return f"The draft model {source} cannot be used: {error}"
        if draft.config.vocab_size != context.config.vocab_size:
            return (
                f"The draft model {source} knows {draft.config.vocab_size} tokens and this model "
                f"{context.config.vocab_size}, so they have different tokenizers. Give a smaller model of the same "
                "family with draft-model.model=SOURCE."
            )
        return None

    def draft_source(self, context: LeverContext) -> str:
        return str(self.settings(context)["model"])

    def settings_of(self, values: dict[str, OptionValue]) -> str:
        return f"by {values['model']}"


SPECULATIONS: dict[str, Speculation] = {"prompt-lookup": PromptLookup(), "draft-model": DraftModel()}
"""Name -> speculation, in the order of menus."""
