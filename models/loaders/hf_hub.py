"""A model on the Hugging Face hub, by id (`org/name`). Only the needed files are fetched, into the hub's own cache."""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gptscope.models.loaders.base import (
    LoadedModel,
    LoadRequest,
    ModelDescription,
    ModelError,
    OfflineError,
    ProgressFn,
)
from gptscope.models.loaders.families import find_family, read_config
from gptscope.models.loaders.hf_folder import describe_folder, load_folder, read_folder
from gptscope.models.loaders.settings import Settings, read_json

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_PROBE_TIMEOUT_S = 10.0
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
)
_TOKENIZER_FILES = frozenset({"tokenizer.json", "vocab.json", "tokenizer.model"})


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """What a repository on the hub offers that we need, with sizes in bytes."""

    commit: str
    small: Mapping[str, int]
    weights: Mapping[str, int]
    """Weight files and their index."""
    weight_format: str


class HfHubSource:
    """Source `hf_hub`."""

    def __init__(self, endpoint: str | None = None, cache_dir: Path | None = None) -> None:
        """`endpoint` and `cache_dir` default to what huggingface_hub takes from the environment."""
        self._endpoint = endpoint
        self._cache_dir = cache_dir

    def accepts(self, source: str) -> bool:
        return _ID.fullmatch(source) is not None and not Path(source).exists()

    def describe(self, source: str) -> ModelDescription:
        folder = self.cached(source)
        if folder is not None:
            return describe_folder(folder, name=source, kind="hf_hub")
        remote = self._look(source)
        config_file = self._download(source, "config.json", None, remote.commit)
        settings = Settings(config_file, read_json(config_file))
        total = sum(size for name, size in remote.weights.items() if not name.endswith(".json"))
        return ModelDescription(
            name=source,
            source="hf_hub",
            config=read_config(find_family(settings), settings),
            random_weights=False,
            has_tokenizer=bool(_TOKENIZER_FILES & set(remote.small)),
            weight_file_bytes=total,
            notes=(f"Not on this machine yet: {total / 1e6:,.0f} MB to fetch from the hub.",),
            weight_format=remote.weight_format,
            fetch_bytes=total,
        )

    def load(self, source: str, request: LoadRequest) -> LoadedModel:
        folder = self.fetch(source, request.progress)
        return load_folder(folder, request, name=source, kind="hf_hub")

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        """Return the cached snapshot; when it is not complete, fetch what is missing (interrupted files resume)."""
        folder = self.cached(source)
        if folder is not None:
            return folder
        remote = self._look(source)
        total = sum(remote.small.values()) + sum(remote.weights.values())
        bar = _ProgressBar(progress, total, source)
        # Small files first: a snapshot with its weights is complete, and an architecture that we lack costs no wait.
        for name, size in remote.small.items():
            folder = self._download(source, name, bar, remote.commit).parent
            bar.file_done(size)
        assert folder is not None  # `_look` refuses a repository without config.json
        config_file = folder / "config.json"
        settings = Settings(config_file, read_json(config_file))
        read_config(find_family(settings), settings)
        self._check_space(sum(remote.weights.values()))
        for name in sorted(remote.weights, key=lambda name: (name.endswith(".json"), name)):  # the index goes last
            self._download(source, name, bar, remote.commit)
            bar.file_done(remote.weights[name])
        read_folder(folder)
        return folder

    def cached(self, source: str) -> Path | None:
        """The snapshot on this machine, None when there is none or it is not complete."""
        from huggingface_hub import try_to_load_from_cache

        config = try_to_load_from_cache(source, "config.json", cache_dir=self._cache_dir)
        if not isinstance(config, str):
            return None
        folder = Path(config).parent
        try:
            files = read_folder(folder).weight_files
        except ModelError:
            return None  # only the config so far, or an architecture that `fetch` will name
        return folder if all(path.is_file() for path in files) else None

    def _look(self, source: str) -> RemoteFiles:
        """Ask the hub once, without retries: whoever is offline shall know at once."""
        from huggingface_hub import HfApi

        try:
            info = HfApi(endpoint=self._endpoint).model_info(source, files_metadata=True, timeout=_PROBE_TIMEOUT_S)
        except Exception as error:
            raise _translate(source, error) from error
        sizes = {each.rfilename: int(each.size or 0) for each in info.siblings or ()}
        parameters = getattr(info.safetensors, "parameters", None) or {}
        return RemoteFiles(
            commit=info.sha or "main",
            small={name: sizes[name] for name in _SMALL_FILES if name in sizes},
            weights=_needed_weights(source, sizes),
            weight_format=", ".join(sorted(parameters, key=lambda name: -parameters[name])),
        )

    def _download(self, source: str, name: str, bar: "_ProgressBar | None", commit: str) -> Path:
        from huggingface_hub import hf_hub_download

        try:
            # The branch, not the commit, is asked for: only so does the cache remember what the branch points to.
            path = hf_hub_download(
                source,
                name,
                cache_dir=self._cache_dir,
                endpoint=self._endpoint,
                tqdm_class=bar.as_class() if bar else _SILENT.as_class(),
            )
        except Exception as error:
            raise _translate(source, error) from error
        if Path(path).parent.name != commit and commit != "main":
            raise ModelError(f"{source} changed on the hub while it was being fetched; fetch it again.")
        return Path(path)

    def _check_space(self, needed_bytes: int) -> None:
        from huggingface_hub import constants

        folder = Path(self._cache_dir or constants.HF_HUB_CACHE)
        free = shutil.disk_usage(folder).free
        if free < needed_bytes:
            raise ModelError(
                f"the model needs {needed_bytes / 1e9:.1f} GB in {folder}, but only {free / 1e9:.1f} GB are free. "
                "Free some space, or set HF_HOME to another disk."
            )


def _needed_weights(source: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Weight files of one kind, safetensors before `.bin`.

    Raises:
        ModelError: The repository has neither, or no config.
    """
    if "config.json" in sizes:
        for single, shard in (
            ("model.safetensors", r"model-\d+-of-\d+\.safetensors"),
            ("pytorch_model.bin", r"pytorch_model-\d+-of-\d+\.bin"),
        ):
            index = f"{single}.index.json"
            if single in sizes:
                return {single: sizes[single]}
            if index in sizes:
                return {name: size for name, size in sizes.items() if name == index or re.fullmatch(shard, name)}
    ggufs = [name for name in sizes if name.endswith(".gguf")]
    hint = f" It has GGUF files ({ggufs[0]}, ...): download one and give its path." if ggufs else ""
    raise ModelError(f"{source} on the hub has no config.json with safetensors or .bin weights.{hint}")


def _translate(source: str, error: Exception) -> ModelError:
    """What went wrong, for a person."""
    from huggingface_hub import errors

    if isinstance(error, ModelError):
        return error
    if isinstance(error, errors.OfflineModeIsEnabled):
        return OfflineError(f"{source} is not on this machine, and HF_HUB_OFFLINE forbids fetching it.")
    if isinstance(error, errors.GatedRepoError):
        return ModelError(
            f"{source} is gated: accept its terms on its hub page, then log in with `hf auth login` or set HF_TOKEN."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelError(
            f"there is no model {source} on the hub (nor a folder of that name here). Check the spelling; a private "
            "model needs `hf auth login` or HF_TOKEN."
        )
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        if status >= 500 or status == 429:
            return OfflineError(f"the hub cannot serve {source} now (it answers {status}); try again later.")
        return ModelError(f"the hub refuses {source}: it answers {status} ({_short(error)}).")
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
        return ModelError(f"{source} cannot be kept in the hub's cache: {error.strerror or error}.")
    return OfflineError(
        f"{source} is not on this machine, and the hub cannot be reached ({_short(error)}). "
        "Connect to the network, or use `bundled`, a local folder or a .gguf file."
    )


def _short(error: Exception) -> str:
    lines: Sequence[str] = (str(error).strip() or type(error).__name__).splitlines()
    return lines[0][:200].rstrip(".")


class _ProgressBar:
    """Collects what huggingface_hub tells its progress bars, over all files, and reports the sum."""

    def __init__(self, progress: ProgressFn, total_bytes: int, note: str) -> None:
        self._progress = progress
        self._total = total_bytes
        self._note = note
        self._finished_bytes = 0
        self._current_bytes = 0.0

    def add(self, count: float) -> None:
        """Count bytes of the current file that have arrived (negative when a transfer starts over)."""
        self._current_bytes += count
        self._report()

    def file_done(self, size: int) -> None:
        """Count a whole file, also one that was here already and so never moved a bar."""
        self._finished_bytes += size
        self._current_bytes = 0.0
        self._report()

    def _report(self) -> None:
        self._progress(self._finished_bytes + self._current_bytes, self._total, "bytes", self._note)

    def as_class(self) -> Any:
        """What stands in for a `tqdm` class; huggingface_hub aggregates its own bars in the same way."""
        owner = self

        class Bar:
            total = 0.0
            n = 0.0

            def __init__(self, *_args: Any, **kwargs: Any) -> None:
                owner.add(kwargs.get("initial") or 0)

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_args: object) -> None:
                """Nothing was opened."""

            def update(self, n: float | None = 1) -> None:
                owner.add(n or 0)

            def update_transfer(self, n: float | None = 1) -> None:
                """Bytes on the wire; `update` counts the bytes on disk."""

            def _ignore(self, *_args: Any, **_kwargs: Any) -> None:
                """Nothing is drawn."""

            close = refresh = set_postfix_str = set_transfer_postfix_str = set_description = _ignore
            set_description_str = _ignore

        return Bar


_SILENT = _ProgressBar(lambda _done, _total, _unit, _note: None, 0, "")
