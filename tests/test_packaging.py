"""The wheel holds what the tree holds, and works where only the wheel is."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

TOPS = ("app", "assets", "models", "profiling")


def listed_packages(repository: Path) -> set[str]:
    settings = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    return set(settings["tool"]["setuptools"]["packages"])


def packages_in_tree(repository: Path) -> set[str]:
    found = set()
    for top in TOPS:
        for file in (repository / top).rglob("*.py"):
            folder = file.parent.relative_to(repository)
            found.add("gptscope." + ".".join(folder.parts))
    return found


def test_every_folder_with_code_is_listed_for_the_wheel(repository: Path) -> None:
    listed = listed_packages(repository)
    data_only = {name for name in listed if not list((repository / name[9:].replace(".", "/")).glob("*.py"))}
    assert listed - data_only == packages_in_tree(repository)


def test_profiling_stays_a_namespace_folder(repository: Path) -> None:
    assert not (repository / "profiling" / "__init__.py").exists(), "it would shadow Python 3.15's own 'profiling'"


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: setuptools leaves its build folder beside what it builds
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        source.mkdir(exist_ok=True)
        shutil.copy(repository / name, source / name)
    for top in TOPS:
        shutil.copytree(repository / top, source / top, ignore=shutil.ignore_patterns("__pycache__"))
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(repository),
    ]
    subprocess.run(command, check=True, timeout=280)
    return next(folder.glob("gptscope-*.whl"))


def test_wheel_has_all_data_files_that_git_tracks(repository: Path, wheel: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", *TOPS], cwd=repository, check=True, capture_output=True, text=True)
    expected = {f"gptscope/{name}" for name in tracked.stdout.splitlines() if (repository / name).is_file()}
    assert expected <= set(zipfile.ZipFile(wheel).namelist())


def test_installed_wheel_runs_the_demo_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    # The dependencies are borrowed from this environment (its own .pth files are not followed, so the checkout is not
    # visible); gptscope itself comes from the wheel alone.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, timeout=120)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    gptscope = python.parent / ("gptscope.exe" if os.name == "nt" else "gptscope")
    run = subprocess.run(
        [gptscope, "demo", "--quick"], check=False, cwd=elsewhere, capture_output=True, text=True, timeout=280
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "tokens/s" in run.stdout or "tok/s" in run.stdout
    location = subprocess.run(
        [python, "-c", "import gptscope.models.gpt as m; print(m.__file__)"],
        check=True,
        cwd=elsewhere,
        capture_output=True,
        text=True,
    )
    assert str(folder) in location.stdout
