"""All sources, in the order in which a text is tried against them."""

from pathlib import Path

from gptscope.models.loaders.base import ModelError, Source
from gptscope.models.loaders.bundled import BundledSource
from gptscope.models.loaders.catalogue import CATALOGUE, CatalogueSource
from gptscope.models.loaders.gguf import GgufSource
from gptscope.models.loaders.hf_folder import HfFolderSource
from gptscope.models.loaders.hf_hub import HfHubSource
from gptscope.models.loaders.nanogpt import NanoGptSource
from gptscope.models.loaders.preset import PresetSource

SOURCES: dict[str, Source] = {
    "bundled": BundledSource(),
    "preset": PresetSource(),
    "catalogue": CatalogueSource(),
    "gguf": GgufSource(),
    "nanogpt": NanoGptSource(),
    "hf_folder": HfFolderSource(),
    "hf_hub": HfHubSource(),
}


def find_source(source: str) -> Source:
    """The source that a text means.

    Raises:
        ModelError: It means none; says what is understood.
    """
    for candidate in SOURCES.values():
        if source and candidate.accepts(source):
            return candidate
    raise ModelError(
        f"unknown model {source!r}: {_why(source)}gptscope understands `bundled`, `preset:NAME`, a catalogue name "
        f"({', '.join(CATALOGUE)}), a Hugging Face folder, a .gguf file, a nanoGPT ckpt.pt, and a hub id such as "
        "org/name."
    )


def _why(source: str) -> str:
    path = Path(source).expanduser()
    if source and path.is_file():
        return f"this file alone is no model; give the folder it lies in ({path.parent}) if that is a model folder. "
    return f"there is no file or folder {path}. " if _looks_like_path(source) else ""


def _looks_like_path(source: str) -> bool:
    return source.startswith((".", "/", "~")) or "\\" in source or Path(source).suffix in (".gguf", ".pt", ".bin")
