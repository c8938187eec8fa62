"""The small GPT that comes with gptscope, trained by `assets/bundled/train.py`; needs no network."""

from pathlib import Path

from gptscope.assets import ASSETS
from gptscope.models.loaders.base import LoadedModel, LoadRequest, ModelDescription, ProgressFn
from gptscope.models.loaders.hf_folder import describe_folder, load_folder

NAME = "bundled"
FOLDER = ASSETS / "bundled"


class BundledSource:
    """Source `bundled`."""

    def accepts(self, source: str) -> bool:
        return source == NAME

    def describe(self, source: str) -> ModelDescription:
        return describe_folder(FOLDER, name=source, kind="bundled")

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        return load_folder(FOLDER, request, name=source, kind="bundled")

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        del source, progress  # it is always here
        return FOLDER
