"""Ranges of activations as a small JSON file, so that one calibration serves many runs."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptscope.models.levers import LeverError

FORMAT = "gptscope activation ranges 1"
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class InputRange:
    """How large the input of one layer got."""

    limits: Mapping[str, float]
    """Method (`minmax`, `mse`, `entropy`, `percentile 99.9`, …) -> the largest magnitude that INT8 should reach."""
    channels: Tensor
    """Largest magnitude of each input feature, `[D]`."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """What a calibration found."""

    source: str
    """The text, for people."""
    tokens: int
    inputs: Mapping[str, InputRange]
    """Name of what is read (`names.input_name`) -> its range."""

    def limit(self, name: str, method: str, percentile: str) -> float:
        """The limit of one input.

        Raises:
            LeverError: The ranges are of another model.
        """
        return self._input(name).limits[f"percentile {percentile}" if method == "percentile" else method]

    def channels(self, name: str, size: int) -> Tensor:
        """Largest magnitude of each of `size` features of one input.

        Raises:
            LeverError: The ranges are of another model.
        """
        found = self._input(name).channels
        if len(found) != size:
            raise LeverError(
                f"The ranges are of another model: {name} has {len(found)} features there and {size} here. "
                "Calibrate this model."
            )
        return found

    def _input(self, name: str) -> InputRange:
        if name not in self.inputs:
            raise LeverError(f"The ranges are of another model: they do not have {name}. Calibrate this model.")
        return self.inputs[name]


def save_ranges(ranges: Ranges, path: Path) -> None:
    """Write a whole file or none."""
    document = {
        "format": FORMAT,
        "source": ranges.source,
        "tokens": ranges.tokens,
        "inputs": {
            name: {
                "limits": {method: _short(limit) for method, limit in one.limits.items()},
                "channels": [_short(value) for value in one.channels.tolist()],
            }
            for name, one in ranges.inputs.items()
        },
    }
    path = path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe or a device takes it as it is
        path.write_text(json.dumps(document), encoding="utf-8")
        return
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(file.name, path)  # noqa: PTH105 (a whole file or none)


def load_ranges(path: Path) -> Ranges:
    """Read what `save_ranges` wrote.

    Raises:
        LeverError: There is no such file, or it holds something else.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LeverError(f"The ranges {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise LeverError(f"{path} does not hold activation ranges: {error}. {_ADVICE}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise LeverError(f"{path} does not hold activation ranges. {_ADVICE}")
    try:
        return _parsed(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LeverError(f"The ranges in {path} are damaged ({error}). {_ADVICE}") from error


_ADVICE = "`gptscope calibrate` makes such a file."


def _parsed(document: Mapping[str, Any]) -> Ranges:
    inputs = {
        str(name): InputRange(
            limits={str(method): float(limit) for method, limit in one["limits"].items()},
            channels=torch.tensor(one["channels"], dtype=torch.float32),
        )
        for name, one in document["inputs"].items()
    }
    return Ranges(source=str(document["source"]), tokens=int(document["tokens"]), inputs=inputs)


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
