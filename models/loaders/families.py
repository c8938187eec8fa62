"""The registry of model families, by the `model_type` of a Hugging Face `config.json`."""

from collections.abc import Collection, Iterator
from typing import Protocol

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.base import ModelError
from gptscope.models.loaders.family_gpt2 import GPT2
from gptscope.models.loaders.family_gpt_neox import GPT_NEOX
from gptscope.models.loaders.family_llama import LLAMA, MISTRAL, QWEN2, QWEN3
from gptscope.models.loaders.settings import Settings
from gptscope.models.loaders.weights import Stored


class Family(Protocol):
    """What has to be known about an architecture to load it."""

    @property
    def name(self) -> str:
        """Its `model_type`."""

    def config(self, settings: Settings) -> GPTConfig:
        """Translate a `config.json`."""

    def plan(self, config: GPTConfig, names: Collection[str]) -> Iterator[Stored]:
        """Which stored tensors become which parameters, given the names that are stored."""

    def ignorable(self, name: str) -> bool:
        """True for stored tensors that carry no weights."""


FAMILIES: dict[str, Family] = {
    "gpt2": GPT2,
    "gpt_neox": GPT_NEOX,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
}

SUPPORTED = "gpt2 (GPT-2), gpt_neox (GPT-NeoX, Pythia), llama (Llama, SmolLM, TinyLlama), mistral, qwen2 and qwen3"
"""What a person is told."""

_NO_LANGUAGE_MODEL = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "DoubleHeadsModel")

_NEUTRAL_VALUES = {
    "quantization_config": {},
    "attn_logit_softcapping": 0.0,
    "final_logit_softcapping": 0.0,
    "embedding_multiplier": 1.0,
    "residual_multiplier": 1.0,
    "logits_scaling": 1.0,
}
"""Fields that change the output in the architectures that have them; the decoder honours none. Value = no effect."""


def find_family(settings: Settings) -> Family:
    """The family a `config.json` names.

    Raises:
        ModelError: It names none, one that we lack, or a model without a language-model head.
    """
    kind = settings.optional("model_type")
    if not isinstance(kind, str) or not kind:
        raise settings.error("model_type", f"is missing, so the architecture is unknown; supported: {SUPPORTED}")
    family = FAMILIES.get(kind)
    if family is None:
        raise ModelError(f"{settings.path}: the architecture {kind!r} is not supported; gptscope runs {SUPPORTED}.")
    architectures = settings.optional("architectures")
    if isinstance(architectures, list) and any(str(name).endswith(_NO_LANGUAGE_MODEL) for name in architectures):
        raise settings.error("architectures", f"is {architectures}, a model that does not predict the next token")
    for name, neutral in _NEUTRAL_VALUES.items():
        settings.refuse_unless(name, neutral=neutral)
    return family


def read_config(family: Family, settings: Settings) -> GPTConfig:
    """Translate a `config.json`, errors naming the file.

    Raises:
        ModelError: Sizes are missing or impossible, or a field is not supported.
    """
    try:
        return family.config(settings)
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(f"{settings.path}: {error}") from error
