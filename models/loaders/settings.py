"""Typed reading of a `config.json`, with errors that name the file and the field."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gptscope.models.loaders.base import ModelError

MAX_JSON_BYTES = 64 * 2**20


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelError: The file is missing, unreadable, absurdly large, or not a JSON object.
    """
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise ModelError(f"{path} has {size:,} bytes, too many for a JSON settings file; it is not one.")
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path} does not exist.") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is not valid JSON ({error}); fetch or copy the file again.") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} must hold a JSON object, but it holds a {type(content).__name__}.")
    return content


@dataclass(frozen=True, slots=True)
class Settings:
    """The fields of one settings file. An absent field and `null` are the same."""

    path: Path
    fields: Mapping[str, Any]

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number; without `default` the field must be there."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, f"must be a whole number, but it is {value!r}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A number; without `default` the field must be there."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, f"must be a number, but it is {value!r}")
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self.error(name, f"must be true or false, but it is {value!r}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without `default` the field must be there."""
        value = self._get(name, default)
        if not isinstance(value, str):
            raise self.error(name, f"must be text, but it is {value!r}")
        return value

    def optional(self, name: str) -> Any:
        """Whatever is there, or None."""
        return self.fields.get(name)

    def refuse_unless(self, name: str, *, neutral: object) -> None:
        """Raise when a field that we do not honour has a value that would change the model's output."""
        value = self.fields.get(name)
        if value is not None and value != neutral:
            raise self.error(name, f"is {value!r}, which gptscope does not support; the output would be wrong")

    def error(self, name: str, problem: str) -> ModelError:
        """A `ModelError` about one field."""
        return ModelError(f"{self.path}: {name} {problem}.")

    def _get(self, name: str, default: object) -> Any:
        value = self.fields.get(name)
        if value is None:
            value = default
        if value is None:
            raise self.error(name, "is missing; without it the model cannot be built")
        return value
