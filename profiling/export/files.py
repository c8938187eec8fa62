"""Files that are whole or not there: written beside their place under another name, then renamed.

What exists and is no regular file (a pipe, a device, an open descriptor) is written as it is and never replaced; a link
stays one, and what it leads to is written.
"""

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
    errno.ELOOP: "it is a link that leads to itself. Choose another place",
    errno.EPIPE: "what read it has ended",
    errno.ENXIO: "nothing can be written into it. Choose another place",
}
_MOST_NAME_BYTES = 200
_MOST_LINKS = 40


class ExportError(ValueError):
    """A file could not be written; the message says which, why, and what to do. Nothing half-written is left."""


def write_whole(path: Path, pieces: Iterable[bytes], *, overwrite: bool = False) -> Path:
    """Write a file from pieces of bytes, whole or not at all.

    Args:
        path: Where it goes.
        pieces: Its content; may read another file as it goes.
        overwrite: Replace a regular file of that name; it stays as it is until the new one is whole.

    Returns:
        The path.

    Raises:
        ExportError: There is a file of that name, or it cannot be written.
    """
    try:
        _write(final_place(path), pieces, overwrite=overwrite)
    except FileExistsError as error:
        raise ExportError(f"{path} was not written: a file of that name is there. Choose another name.") from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise ExportError(f"{path} was not written: {reason}.") from error
    return path


def final_place(path: Path) -> Path:
    """Where links lead to; descriptors that the system shows as links are left as they are.

    Raises:
        OSError: It cannot be told.
    """
    for _ in range(_MOST_LINKS):
        if not path.is_symlink() or _is_descriptor(path):
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def is_written_straight(path: Path) -> bool:
    """Whether what is there must not be replaced, because it is no regular file or belongs to who opened it."""
    return _is_descriptor(path) or (path.exists() and not path.is_file())


def _is_descriptor(path: Path) -> bool:
    folder = os.path.realpath(path.parent)
    return folder == "/dev/fd" or (folder.startswith("/proc/") and folder.endswith("/fd"))


def _write(path: Path, pieces: Iterable[bytes], *, overwrite: bool) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not overwrite and path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    if is_written_straight(path):
        _write_straight(path, pieces)
    else:
        _write_beside(path, pieces, overwrite=overwrite)


def _write_straight(path: Path, pieces: Iterable[bytes]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as file:  # noqa: PTH123 (must neither make nor empty it)
        file.writelines(pieces)


def _write_beside(path: Path, pieces: Iterable[bytes], *, overwrite: bool) -> None:
    name = path.name if len(os.fsencode(path.name)) < _MOST_NAME_BYTES else path.name[: _MOST_NAME_BYTES // 4]
    part = path.with_name(f".{name}.{os.getpid()}.part")
    with contextlib.suppress(FileNotFoundError):
        path.lstat()  # a name that is too long is told before the work
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
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _move_to_new(part: Path, path: Path) -> None:
    """Give the whole file its name without replacing one that appeared meanwhile (where the disk has hard links)."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        part.replace(path)
