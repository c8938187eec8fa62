"""A GGUF file: weights dequantised to FP32, config and tokenizer from its metadata."""

from pathlib import Path

from gptscope.models.loaders.base import LoadedModel, LoadRequest, ModelDescription, ProgressFn
from gptscope.models.loaders.families import find_family, read_config
from gptscope.models.loaders.files import file_bytes
from gptscope.models.loaders.gguf_config import architecture_of, hugging_face_settings
from gptscope.models.loaders.gguf_file import read_header
from gptscope.models.loaders.gguf_tokenizer import can_build, load_gguf_tokenizer
from gptscope.models.loaders.weights import build_model
from gptscope.models.loaders.weights_gguf import GgufWeights, storage_format

SUFFIX = ".gguf"
_EXACT = {"F32", "F16", "BF16"}


class GgufSource:
    """Source `gguf`."""

    def accepts(self, source: str) -> bool:
        path = Path(source).expanduser()
        return path.suffix.lower() == SUFFIX and path.is_file()

    def describe(self, source: str) -> ModelDescription:
        path = Path(source).expanduser()
        return describe_gguf(path, name=path.stem)

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        path = Path(source).expanduser()
        return load_gguf(path, request, name=path.stem)

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        del progress
        self.describe(source)
        return Path(source).expanduser()


def describe_gguf(path: Path, *, name: str) -> ModelDescription:
    """Describe a file from its header."""
    header = read_header(path)
    settings = hugging_face_settings(header)
    stored = storage_format(header)
    return ModelDescription(
        name=name,
        source="gguf",
        config=read_config(find_family(settings), settings),
        random_weights=False,
        has_tokenizer=can_build(header.metadata),
        weight_file_bytes=file_bytes(path),
        notes=_notes(stored),
        weight_format=stored,
    )


def load_gguf(path: Path, request: LoadRequest, *, name: str) -> LoadedModel:
    """Load a file's weights and tokenizer."""
    header = read_header(path)
    settings = hugging_face_settings(header)
    family = find_family(settings)
    config = read_config(family, settings)
    weights = GgufWeights(header, architecture_of(header), config)

    def ignorable(stored: str) -> bool:
        return stored == "rope_freqs.weight" or family.ignorable(stored)  # read with the config

    plan = family.plan(config, weights.shapes.keys())
    model, notes = build_model(config, plan, weights, request, where=str(path), ignorable=ignorable)
    tokenizer, tokenizer_notes = load_gguf_tokenizer(header, config.vocab_size)
    description = ModelDescription(
        name=name,
        source="gguf",
        config=config,
        random_weights=False,
        has_tokenizer=tokenizer is not None,
        weight_file_bytes=file_bytes(path),
        notes=_notes(weights.format) + notes + tokenizer_notes,
        weight_format=weights.format,
    )
    return LoadedModel(model=model, tokenizer=tokenizer, description=description)


def _notes(stored: str) -> tuple[str, ...]:
    if set(stored.split(", ")) <= _EXACT:
        return ()
    return (f"The stored weights are quantised ({stored}); the model runs on their dequantised values.",)
