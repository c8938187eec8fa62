"""Looking at files before trusting them."""

from pathlib import Path

from gptscope.models.loaders.base import ModelError

_HEAD_BYTES = 256


def file_bytes(path: Path) -> int:
    """Size of a file.

    Raises:
        ModelError: There is no such file.
    """
    try:
        return path.stat().st_size
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error


def check_weight_file(path: Path) -> bytes:
    """Refuse a weight file that is missing, empty, or plainly something else; return its first bytes.

    Raises:
        ModelError: With what the file is instead, and what to do.
    """
    if not path.is_file():
        raise ModelError(f"{path} does not exist, but the model needs it; the copy or download is incomplete.")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not head:
        raise ModelError(f"{path} is empty; fetch or copy the file again.")
    if head.startswith(b"version https://git-lfs"):
        raise ModelError(f"{path} is a Git LFS pointer, not the weights themselves; run `git lfs pull` in its folder.")
    if head.lstrip().lower().startswith((b"<!doctype", b"<html")):
        raise ModelError(f"{path} is a web page, not weights; the download went wrong. Fetch it again.")
    return head


def dominant(bytes_per_type: dict[str, int]) -> str:
    """Names of storage types, most bytes first."""
    return ", ".join(sorted(bytes_per_type, key=lambda name: -bytes_per_type[name]))
