"""The bundled model: a small Llama-style GPT that this project trained on public-domain text. See `SOURCES.md`."""

from importlib.resources import files
from pathlib import Path


def bundled_folder() -> Path:
    """The Hugging Face folder of the bundled model; the same in a checkout and in an installed wheel."""
    return Path(str(files(__name__)))


def evaluation_text() -> Path:
    """Text that was kept out of training, for perplexity."""
    return bundled_folder() / "eval.txt"


def calibration_text() -> Path:
    """Text from the training side, for the ranges of static quantization."""
    return bundled_folder() / "calibration.txt"
