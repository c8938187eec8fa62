"""Files that are whole or not there: written beside their place under another name, then renamed."""

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

_REASONS = {
    errno.ENOSPC: "there is no space left on the disk. Free some, or choose another place",
    errno.EDQUOT: "your disk quota is used up. Free some space, or choose another place",
    errno.EROFS: "the disk is read-only. Choose another place",
    errno.EACCES: "you may not write there. Choose another place",
    errno.EPERM: "you may not write there. Choose another place",
    errno.ENOENT: "the folder does not exist. Make it first, or choose another place",
    errno.ENOTDIR: "a part of the path is a file, not a folder. Choose another place",
    errno.EISDIR: "it is a folder. Give a file name",
    errno.ENAMETOOLONG: "the name is too long. Choose a shorter one",
}


class ExportError(ValueError):
    """A file could not be written; the message says which, why, and what to do. Nothing half-written is left."""


def write_whole(path: Path, pieces: Iterable[bytes], *, overwrite: bool = False) -> Path:
    """Write a file from pieces of bytes, whole or not at all.

    Args:
        path: Where it goes.
        pieces: Its content; may read another file as it goes.
        overwrite: Replace a file of that name; it stays as it is until the new one is whole.

    Returns:
        The path.

    Raises:
        ExportError: There is a file of that name, or it cannot be written.
    """
    if path.is_dir():
        raise ExportError(f"{path} was not written: {_REASONS[errno.EISDIR]}.")
    if not overwrite and path.exists():
        raise ExportError(f"{path} was not written: a file of that name is there. Choose another name.")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            part.replace(path)
        else:
            _move_to_new(part, path)
    except FileExistsError as error:
        raise ExportError(f"{path} was not written: a file of that name is there. Choose another name.") from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise ExportError(f"{path} was not written: {reason}.") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return path


def _move_to_new(part: Path, path: Path) -> None:
    """Give the whole file its name without replacing one that appeared meanwhile (where the disk has hard links)."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        part.replace(path)
