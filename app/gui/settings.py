"""What the window remembers in one INI file of the user's: theme, digits of figures, library, layout, recent models."""

from pathlib import Path
from typing import cast

from platformdirs import user_cache_path, user_config_path
from PySide6.QtCore import QByteArray, QSettings

from gptscope.app.gui.theme import ThemeChoice
from gptscope.app.viewmodels.formatting import DIGITS

MAX_RECENT = 8
_LAYOUT_VERSION = 1


class Settings:
    """Typed access to the settings file. Values that do not parse fall back to the default."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or user_config_path("gptscope", appauthor=False) / "window.ini"
        self._store = QSettings(str(self.file), QSettings.Format.IniFormat)

    @property
    def theme(self) -> ThemeChoice:
        """`system`, `dark` or `light`."""
        value = str(self._store.value("theme", "system"))
        return cast("ThemeChoice", value if value in ("system", "dark", "light") else "system")

    @theme.setter
    def theme(self, choice: ThemeChoice) -> None:
        self._store.setValue("theme", choice)

    @property
    def library_folder(self) -> Path | None:
        """Where runs are kept; None: the user's data folder."""
        value = str(self._store.value("library", ""))
        return Path(value) if value else None

    @library_folder.setter
    def library_folder(self, folder: Path | None) -> None:
        self._store.setValue("library", str(folder) if folder is not None else "")

    @property
    def recent_models(self) -> list[str]:
        """Newest first."""
        value = self._store.value("recent_models", [])
        return [str(item) for item in (value if isinstance(value, list) else [value]) if item]

    def add_recent_model(self, source: str) -> None:
        """Put a model first in the list."""
        kept = [source, *(item for item in self.recent_models if item != source)]
        self._store.setValue("recent_models", kept[:MAX_RECENT])

    @property
    def recent_traces(self) -> list[str]:
        """Opened trace files, newest first."""
        value = self._store.value("recent_traces", [])
        return [str(item) for item in (value if isinstance(value, list) else [value]) if item]

    def add_recent_trace(self, path: str) -> None:
        """Put a trace first in the list."""
        kept = [path, *(item for item in self.recent_traces if item != path)]
        self._store.setValue("recent_traces", kept[:MAX_RECENT])

    def remove_recent_trace(self, path: str) -> None:
        """Take a trace out of the list."""
        self._store.setValue("recent_traces", [item for item in self.recent_traces if item != path])

    @property
    def baseline_run(self) -> str:
        """Id of the pinned run, empty when none is."""
        return str(self._store.value("baseline", ""))

    @baseline_run.setter
    def baseline_run(self, run_id: str) -> None:
        self._store.setValue("baseline", run_id)

    @property
    def profile_after_run(self) -> bool:
        """Whether Run records a profile after measuring."""
        return str(self._store.value("profile", "true")) == "true"

    @profile_after_run.setter
    def profile_after_run(self, on: bool) -> None:
        self._store.setValue("profile", "true" if on else "false")

    @property
    def digits(self) -> int:
        """Significant digits of all figures."""
        text = str(self._store.value("digits", DIGITS[0]))
        return int(text) if text in {str(digits) for digits in DIGITS} else DIGITS[0]

    @digits.setter
    def digits(self, digits: int) -> None:
        self._store.setValue("digits", digits)

    def layout(self) -> tuple[QByteArray, QByteArray] | None:
        """Window geometry and dock state as saved; None when there is none of this version."""
        if str(self._store.value("layout/version", "")) != str(_LAYOUT_VERSION):
            return None
        geometry, state = self._store.value("layout/geometry"), self._store.value("layout/state")
        if isinstance(geometry, QByteArray) and isinstance(state, QByteArray):
            return geometry, state
        return None

    def save_layout(self, geometry: QByteArray, state: QByteArray) -> None:
        """Keep window geometry and dock state."""
        self._store.setValue("layout/version", str(_LAYOUT_VERSION))
        self._store.setValue("layout/geometry", geometry)
        self._store.setValue("layout/state", state)

    def forget_layout(self) -> None:
        """Back to the built-in layout at the next start."""
        self._store.remove("layout")

    def sync(self) -> None:
        """Write everything now."""
        self._store.sync()


def cache_folder() -> Path:
    """Where the window keeps its small generated files."""
    return user_cache_path("gptscope", appauthor=False) / "window"
