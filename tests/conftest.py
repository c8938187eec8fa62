"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Kernels of the test process and of the workers it starts share two cores: waiting threads must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's top folder."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Folder of real traces with independent truth; it lies beside the checkout, not in it."""
    folder = Path(os.environ.get("GPTSCOPE_SHARED_TRACES", REPOSITORY.parent / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip(f"the shared trace collection is not at {folder} (set GPTSCOPE_SHARED_TRACES)")
    return folder


@pytest.fixture(autouse=True)
def private_user_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Library and settings of a test never touch the user's own; the cache (models, measured peaks) is shared."""
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    return home
