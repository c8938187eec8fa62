"""A folder as Hugging Face writes it: `config.json`, weights in safetensors (or `.bin`), tokenizer files."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.base import LoadedModel, LoadRequest, ModelDescription, ModelError, ProgressFn
from gptscope.models.loaders.families import Family, find_family, read_config
from gptscope.models.loaders.files import check_weight_file, file_bytes
from gptscope.models.loaders.settings import Settings, read_json
from gptscope.models.loaders.tokenizer import has_tokenizer, load_folder_tokenizer
from gptscope.models.loaders.weights import Weights, build_model
from gptscope.models.loaders.weights_safetensors import SafetensorsWeights
from gptscope.models.loaders.weights_torch import TorchWeights

_SINGLE = ("model.safetensors", "pytorch_model.bin")
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """What config and file names tell."""

    family: Family
    config: GPTConfig
    weight_files: tuple[Path, ...]


class HfFolderSource:
    """Source `hf_folder`."""

    def accepts(self, source: str) -> bool:
        return Path(source).expanduser().is_dir()

    def describe(self, source: str) -> ModelDescription:
        folder = Path(source).expanduser()
        return describe_folder(folder, name=folder.resolve().name, kind="hf_folder")

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        folder = Path(source).expanduser()
        return load_folder(folder, request, name=folder.resolve().name, kind="hf_folder")

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        del progress  # nothing to wait for
        folder = Path(source).expanduser()
        self.describe(source)
        return folder


def read_folder(folder: Path) -> FolderFacts:
    """Read config and find the weight files, without opening them.

    Raises:
        ModelError: No config, no weights, or an architecture that we lack.
    """
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise ModelError(_no_config(folder))
    settings = Settings(config_file, read_json(config_file))
    family = find_family(settings)
    config = read_config(family, settings)
    return FolderFacts(family, config, weight_files(folder))


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The files with the weights, safetensors first.

    Raises:
        ModelError: There are none, or an index names a file outside the folder.
    """
    for single, index in zip(_SINGLE, _INDEXES, strict=True):
        if (folder / single).exists():
            return (folder / single,)
        if (folder / index).exists():
            return _shards(folder / index)
    raise ModelError(f"{folder} has a config.json but no weights ({_SINGLE[0]}, {_SINGLE[1]}, or an index of shards).")


def describe_folder(folder: Path, *, name: str, kind: str) -> ModelDescription:
    """Describe a folder from its headers."""
    facts = read_folder(folder)
    total = sum(file_bytes(path) for path in facts.weight_files)
    for path in facts.weight_files:
        check_weight_file(path)
    return ModelDescription(
        name=name,
        source=kind,
        config=facts.config,
        random_weights=False,
        has_tokenizer=has_tokenizer(folder),
        weight_file_bytes=total,
        weight_format=_format(facts),
    )


def load_folder(folder: Path, request: LoadRequest, *, name: str, kind: str) -> LoadedModel:
    """Load a folder's weights and tokenizer."""
    facts = read_folder(folder)
    with open_weights(facts.weight_files) as weights:
        model, notes = build_model(
            facts.config,
            facts.family.plan(facts.config, weights.shapes.keys()),
            weights,
            request,
            where=str(folder),
            ignorable=facts.family.ignorable,
        )
        weight_format = weights.format
    tokenizer, tokenizer_notes = load_folder_tokenizer(folder, facts.config.vocab_size)
    description = ModelDescription(
        name=name,
        source=kind,
        config=facts.config,
        random_weights=False,
        has_tokenizer=tokenizer is not None,
        weight_file_bytes=sum(file_bytes(path) for path in facts.weight_files),
        notes=notes + tokenizer_notes,
        weight_format=weight_format,
    )
    return LoadedModel(model=model, tokenizer=tokenizer, description=description)


@contextmanager
def open_weights(files: tuple[Path, ...]) -> Iterator[Weights]:
    """Open safetensors or `.bin` files and close them at the end."""
    with ExitStack() as stack:
        if files[0].suffix == ".safetensors":
            yield SafetensorsWeights(list(files), stack)
        else:
            yield TorchWeights.open(list(files))


def _format(facts: FolderFacts) -> str:
    if facts.weight_files[0].suffix != ".safetensors":
        return ""  # a pickle tells nothing before it is read
    with open_weights(facts.weight_files) as weights:
        return weights.format


def _shards(index: Path) -> tuple[Path, ...]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map or not all(isinstance(x, str) for x in weight_map.values()):
        raise ModelError(f"{index} has no weight_map from tensors to files; fetch or copy the file again.")
    names = sorted(set(weight_map.values()))
    suffix = ".safetensors" if index.name == _INDEXES[0] else ".bin"
    for name in names:
        if Path(name).name != name or "\\" in name or not name.endswith(suffix):
            raise ModelError(f"{index} names {name!r}, which is not a {suffix} file of the same folder; refused.")
    return tuple(index.parent / name for name in names)


def _no_config(folder: Path) -> str:
    inside = sorted(path.name for path in folder.glob("*.gguf"))
    if inside:
        return f"{folder} has no config.json, but the GGUF file {inside[0]}: give the path of that file."
    return (
        f"{folder} has no config.json, so it is no Hugging Face model folder. Give a folder with config.json and "
        "model.safetensors, a .gguf file, or a nanoGPT ckpt.pt."
    )
