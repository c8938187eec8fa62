"""The text of a trace file, whatever its name says: plain, gzip or zip, with or without a byte order mark."""

import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from gptscope.profiling.trace.ahead import ahead
from gptscope.profiling.trace.health import HealthReport, TraceError

BLOCK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK\x03\x04"
_BOM = b"\xef\xbb\xbf"
_BOMB_RATIO = 200
"""Real traces inflate 5 to 40 times."""
_BOMB_FREE_BYTES = 64 << 20
"""Below this size no ratio is suspicious."""
_DENSE_RATIO = 60
_COLUMN_FREE_BYTES = 100 << 20


class TraceText:
    """One file, read from front to back as blocks of uncompressed text."""

    def __init__(self, path: Path, health: HealthReport) -> None:
        self.path, self._health = path, health
        self.bytes_read = 0
        """Of the file."""
        self.size = 0
        self._inflated = 0
        self._working: Generator[bytes] | None = None
        self._opened: list[BinaryIO | zipfile.ZipFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._working is not None:
            self._working.close()  # the thread that inflates ends before its file is closed
        for one in reversed(self._opened):
            one.close()

    def blocks(self) -> Iterator[bytes]:
        """Yield the uncompressed text in blocks of about a megabyte, without a byte order mark.

        Raises:
            TraceError: The file is missing, unreadable, empty, or an archive without a trace.
        """
        name = self.path.name
        try:
            file = self.path.open("rb")
            self._opened.append(file)
            self.size = file.seek(0, 2)
            file.seek(0)
            magic = file.read(4)
            file.seek(0)
            if not magic:
                raise TraceError(f"{name} is empty, so it is not a trace.")
            first = True
            for block in self._unpacked(file, magic):
                yield block.removeprefix(_BOM) if first else block
                first = False
        except OSError as error:
            raise TraceError(f"{self.path} cannot be read: {error.strerror or error}.") from error

    def _unpacked(self, file: BinaryIO, magic: bytes) -> Iterator[bytes]:
        if magic == _ZIP_MAGIC:
            member = self._zip_member(file)
            inner = member.read(2)
            packed = self._inflate(member, inner) if inner == _GZIP_MAGIC else self._plain(member, inner)
        elif magic[:2] == _GZIP_MAGIC:
            packed = self._inflate(file)
        else:
            return self._plain(file)
        self._working = ahead(packed)
        return self._working

    def _zip_member(self, file: BinaryIO) -> BinaryIO:
        """The largest JSON file of an archive; the others are named in the report."""
        try:
            archive = zipfile.ZipFile(file)
            self._opened.append(archive)
            members = [m for m in archive.infolist() if not m.is_dir()]
            traces = [m for m in members if m.filename.lower().endswith((".json", ".json.gz", ".gz"))] or members
            if not traces:
                raise TraceError(f"{self.path.name} is a zip archive with nothing in it.")
            chosen = max(traces, key=lambda m: m.file_size)
            if len(traces) > 1:
                message = f"other files in the archive; only {chosen.filename} is opened"
                self._health.add("ignored", message, count=len(traces) - 1)
            member: BinaryIO = archive.open(chosen)  # type: ignore[assignment]
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            message = f"{self.path.name} is a zip archive that cannot be opened ({error}); unpack it with another tool."
            raise TraceError(message) from error
        self._opened.append(member)
        return member

    def _plain(self, file: BinaryIO, begun: bytes = b"") -> Iterator[bytes]:
        while True:
            try:
                block = file.read(BLOCK_BYTES)
            except (zlib.error, zipfile.BadZipFile, EOFError) as error:
                self._cut(f"the compressed data is damaged ({error})")
                return
            if not block and not begun:
                return
            block, begun = begun + block, b""
            self._inflated += len(block)
            self.bytes_read = min(self.size, self._position())
            self._check_ratio()
            yield block

    def _position(self) -> int:
        first = self._opened[0]
        return 0 if isinstance(first, zipfile.ZipFile) else first.tell()

    def _inflate(self, file: BinaryIO, begun: bytes = b"") -> Iterator[bytes]:
        """Inflate one or more gzip members; what inflates before the data ends or breaks is kept."""
        inflater = zlib.decompressobj(wbits=31)
        inside_member = False
        while compressed := begun + file.read(BLOCK_BYTES // 4):
            begun = b""
            self.bytes_read = min(self.size, self._position())
            while compressed:
                inside_member = True
                try:
                    block = inflater.decompress(compressed, BLOCK_BYTES)
                except zlib.error as error:
                    self._cut(f"the compressed data is damaged ({error})")
                    return
                self._inflated += len(block)
                self._check_ratio()
                if block:
                    yield block
                compressed = inflater.unconsumed_tail
                if inflater.eof:
                    inside_member = False
                    compressed = inflater.unused_data
                    inflater = zlib.decompressobj(wbits=31)
                    if compressed and not compressed.startswith(_GZIP_MAGIC):
                        message = "bytes after the end of the compressed data"
                        self._health.add("ignored", message, byte_offset=self._inflated)
                        return
        if inside_member:
            rest = inflater.flush()
            if rest:
                self._inflated += len(rest)
                yield rest
            self._cut("the compressed data ends early")

    def _cut(self, message: str) -> None:
        self._health.add("truncated", message, byte_offset=self._inflated)

    def _check_ratio(self) -> None:
        if self._inflated > _BOMB_FREE_BYTES and self._inflated > _BOMB_RATIO * max(self.bytes_read, 1):
            message = f"{self.path.name} inflates to more than {_BOMB_RATIO} times its size; it is not opened."
            raise TraceError(message)

    def check_memory(self, column_bytes: int) -> None:
        """Refuse a small file that holds more events than any recording of its size.

        Raises:
            TraceError: It does.
        """
        dense = self._inflated > _DENSE_RATIO * max(self.bytes_read, 1)
        if dense and column_bytes > _COLUMN_FREE_BYTES + 2 * self.bytes_read:
            raise TraceError(
                f"{self.path.name} inflates to more than {_DENSE_RATIO} times its size and would fill the memory;"
                " it is not opened."
            )


def read_range(path: Path, offset: int, size: int) -> bytes:
    """Some bytes of the uncompressed text.

    Raises:
        TraceError: The file cannot be read any more.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic[:2] != _GZIP_MAGIC and magic != _ZIP_MAGIC:
                file.seek(offset + (len(_BOM) if magic.startswith(_BOM) else 0))
                return file.read(size)
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}.") from error
    kept: list[bytes] = []
    position, wanted_end = 0, offset + size
    with TraceText(path, HealthReport()) as text:
        for block in text.blocks():
            end = position + len(block)
            if end > offset:
                kept.append(block[max(0, offset - position) : wanted_end - position])
            position = end
            if position >= wanted_end:
                break
    return b"".join(kept)
