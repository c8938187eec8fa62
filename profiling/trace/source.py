"""Blocks of text from a trace file, whatever its name says: plain or gzip, with or without a byte order mark."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gptscope.profiling.trace.health import HealthReport, TraceError

BLOCK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK\x03\x04"
_BOM = b"\xef\xbb\xbf"
_BOMB_RATIO = 500
_BOMB_FREE_BYTES = 64 << 20
"""Below this size no ratio is suspicious."""


def read_blocks(path: Path, health: HealthReport) -> Iterator[bytes]:
    """Yield the file's uncompressed text in blocks of about a megabyte.

    Raises:
        TraceError: The file is missing, unreadable, empty, or an archive that this reader does not open.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if not magic:
                raise TraceError(f"{path.name} is empty, so it is not a trace.")
            if magic == _ZIP_MAGIC:
                raise TraceError(f"{path.name} is a zip archive; unpack it and open the trace inside.")
            blocks = _inflate(file, path.name, health) if magic[:2] == _GZIP_MAGIC else _plain(file)
            first = True
            for block in blocks:
                yield block.removeprefix(_BOM) if first else block
                first = False
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}.") from error


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block


def _inflate(file: BinaryIO, name: str, health: HealthReport) -> Iterator[bytes]:
    """Inflate one or more gzip members; what inflates before the data ends or breaks is kept."""
    inflater = zlib.decompressobj(wbits=31)
    read = written = 0
    inside_member = False
    while compressed := file.read(BLOCK_BYTES // 4):
        read += len(compressed)
        while compressed:
            inside_member = True
            try:
                block = inflater.decompress(compressed, BLOCK_BYTES)
            except zlib.error as error:
                health.add("truncated", f"the compressed data is damaged ({error})", byte_offset=written)
                return
            written += len(block)
            if written > _BOMB_FREE_BYTES and written > _BOMB_RATIO * read:
                raise TraceError(f"{name} inflates to more than {_BOMB_RATIO} times its size; it is not opened.")
            if block:
                yield block
            compressed = inflater.unconsumed_tail
            if inflater.eof:
                inside_member = False
                compressed = inflater.unused_data
                inflater = zlib.decompressobj(wbits=31)
                if compressed and not compressed.startswith(_GZIP_MAGIC):
                    health.add("ignored", "bytes after the end of the compressed data", byte_offset=written)
                    return
    if inside_member:
        rest = inflater.flush()
        if rest:
            yield rest
        health.add("truncated", "the compressed data ends early", byte_offset=written + len(rest))
