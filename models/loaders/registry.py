"""All sources, in the order in which a text is tried against them."""

from pathlib import Path

from gptscope.models.loaders.base import ModelError, Source
from gptscope.models.loaders.bundled import BundledSource
from gptscope.models.loaders.catalogue import CatalogueSource
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
        if candidate.accepts(source):
            return candidate
    missing = f"there is no file or folder {Path(source)}, and " if _looks_like_path(source) else ""
    raise ModelError(
        f"unknown model {source!r}: {missing}gptscope understands `bundled`, `preset:NAME`, a catalogue name, "
        "a Hugging Face folder, a .gguf file, a nanoGPT ckpt.pt, and a hub id such as org/name."
    )


def _looks_like_path(source: str) -> bool:
    return source.startswith((".", "/", "~")) or "\\" in source or Path(source).suffix in (".gguf", ".pt", ".bin")
