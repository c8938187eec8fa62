"""The smaller model that guesses for the one that is measured."""

from gptscope.models.decoding.speculation import SPECULATIONS
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext
from gptscope.models.loaders import Tokenizer, load_model
from gptscope.models.precision import RECIPES
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.model_info import progress_to
from gptscope.profiling.worker.output import Output

_PROBE = "The same text in the same tokens: 1, 22, 333; été, \N{SNOWMAN}\n\tdef f(x): return x"


def load_draft(context: LeverContext, tokenizer: Tokenizer | None, output: Output) -> GPT | None:
    """Load the model that the lever `speculation` names; None when guessing needs none.

    Args:
        context: The levers.
        tokenizer: Of the model that is measured.
        output: Progress goes there.

    Raises:
        RequestError: The two models read text in different tokens.
        ModelError: The draft model is missing, damaged or unsupported.
    """
    source = None if context.speculation == "none" else SPECULATIONS[context.speculation].draft_source(context)
    if source is None:
        return None
    output.progress("load", 0, 0, note=f"reading {source}")
    draft = load_model(
        source, dtype=RECIPES[context.precision].weight_dtype(training=False), progress=progress_to(output)
    )
    if tokenizer is not None and draft.tokenizer is not None and tokens(tokenizer) != tokens(draft.tokenizer):
        raise RequestError(
            f"The draft model {source} splits text into other tokens than this model, so its guesses would be "
            "nonsense. Give a smaller model of the same family with draft-model.model=SOURCE."
        )
    return draft.model


def tokens(tokenizer: Tokenizer) -> list[int]:
    """Tokens of a text that shows how a tokenizer splits words, numbers, letters beyond ASCII, and code."""
    return tokenizer.encode(_PROBE)
