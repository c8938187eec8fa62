"""The trace as torch.profiler recorded it (Kineto's Chrome JSON), byte for byte: gzipped, or plain by its name."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from gptscope.profiling.export.files import ExportError, write_whole

_BLOCK_BYTES = 1 << 20


def export_trace(kept: Path, path: Path, *, overwrite: bool = False) -> Path:
    """Write a kept trace.

    Args:
        kept: The gzipped trace in the library.
        path: Where it goes. A name that ends in `.gz` gets the gzipped trace, any other one plain JSON.
        overwrite: Replace a file of that name.

    Raises:
        ExportError: The kept trace is missing or damaged, or the file cannot be written.
    """
    if not kept.is_file():
        raise ExportError(f"{path} was not written: the kept trace {kept} is not there any more.")
    pieces = _copied(kept) if path.name.endswith(".gz") else _inflated(kept)
    return write_whole(path, pieces, overwrite=overwrite)


def _copied(kept: Path) -> Iterator[bytes]:
    with kept.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _inflated(kept: Path) -> Iterator[bytes]:
    try:
        with gzip.open(kept, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ExportError(f"The kept trace {kept} is damaged ({error}); export it as .json.gz instead.") from error
