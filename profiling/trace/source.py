"""The text of a trace file, whatever its name says: plain, gzip or zip, with or without a byte order mark."""

import contextlib
import lzma
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from gptscope.profiling.trace.ahead import ahead
from gptscope.profiling.trace.health import HealthReport, TraceError

BLOCK_BYTES = 1 << 19
"""Small enough that the events of a block, which are looked at many times, stay in a processor's second cache."""
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK\x03\x04"
_BOM = b"\xef\xbb\xbf"
_BOMB_RATIO = 200
"""Real traces inflate 5 to 40 times."""
_BOMB_FREE_BYTES = 64 << 20
"""Below this size no ratio is suspicious."""
_CHECKPOINT_BYTES = 16 << 20
"""Of text between two places from which it can be read again; each costs about 40 kB."""
_DENSE_RATIO = 60
_COLUMN_FREE_BYTES = 24 << 20


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place in a gzipped file, with the state of what inflates it from there."""

    file_position: int
    text_position: int
    """In the uncompressed text, a byte order mark included."""
    inflater: "zlib._Decompress"


class TraceText:
    """One file, read from front to back as blocks of uncompressed text."""

    def __init__(self, path: Path, health: HealthReport) -> None:
        self.path, self._health = path, health
        self.bytes_read = 0
        """Of the file."""
        self.size = 0
        self._inflated = 0
        self.checkpoints = [Checkpoint(0, 0, zlib.decompressobj(wbits=31))]
        """Places from which gzipped text can be read again."""
        self.bom_bytes = 0
        self.packed = False
        """The text is inflated, from gzip or zip."""
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

    @property
    def file(self) -> BinaryIO | None:
        """The open file."""
        opened = self._opened[0] if self._opened else None
        return None if isinstance(opened, zipfile.ZipFile) else opened

    def blocks_from(self, offset: int) -> Iterator[bytes]:
        """The text of a plain file again from a place on, in blocks; `blocks` has begun before and ends with this."""
        assert self.file is not None
        assert not self.packed
        try:
            self.file.seek(offset)
            self._inflated = offset
            yield from self._plain(self.file)
        except OSError as error:
            raise self._unreadable(error) from error

    def blocks(self, cut: int | None = None) -> Iterator[bytes]:
        """Yield the uncompressed text in blocks of about half a megabyte, without a byte order mark.

        Args:
            cut: A block of a plain file ends after so many bytes.

        Raises:
            TraceError: The file is missing, unreadable, empty, or an archive without a trace.
        """
        name = self.path.name
        if self.path.is_fifo():  # waiting for its other end would never end
            raise TraceError(f"{self.path} is a pipe, and a trace is read more than once. Save it as a file first.")
        if self.path.is_dir():
            raise TraceError(f"{self.path} is a folder. Open one of the traces in it.")
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
            for block in self._unpacked(file, magic, cut):
                if first and block.startswith(_BOM):
                    self.bom_bytes = len(_BOM)
                    block = block[len(_BOM) :]  # noqa: PLW2901
                yield block
                first = False
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> TraceError:
        return TraceError(f"{self.path} cannot be read: {error.strerror or error}.")

    def _unpacked(self, file: BinaryIO, magic: bytes, cut: int | None) -> Iterator[bytes]:
        if magic == _ZIP_MAGIC:
            member = self._zip_member(file)
            inner = self._read(member, 2)
            packed = self._inflate(member, inner) if inner == _GZIP_MAGIC else self._plain(member, inner)
        elif magic[:2] == _GZIP_MAGIC:
            packed = self._inflate(file)
        else:
            return self._plain(file, cut=cut)
        self.packed = True
        self._working = ahead(packed)
        return self._working

    def _zip_member(self, file: BinaryIO) -> BinaryIO:
        """The largest JSON file of an archive; the others are named in the report."""
        try:
            archive = zipfile.ZipFile(file)
            self._opened.append(archive)
            members = [m for m in archive.infolist() if not m.is_dir() and not _of_macos(m.filename)]
            traces = [m for m in members if m.filename.lower().endswith((".json", ".json.gz", ".gz"))] or members
            if not traces:
                raise TraceError(f"{self.path.name} is a zip archive with nothing in it.")
            if any(m.filename.endswith("/data.pkl") for m in members):
                raise TraceError(f"{self.path.name} is a file of torch.save, such as a checkpoint, not a trace.")
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

    def _plain(self, file: BinaryIO, begun: bytes = b"", cut: int | None = None) -> Iterator[bytes]:
        while True:
            until_cut = cut - self._inflated if cut is not None else 0
            block = self._read(file, min(BLOCK_BYTES, until_cut) if until_cut > 0 else BLOCK_BYTES)
            if not block and not begun:
                return
            block, begun = begun + block, b""
            self._inflated += len(block)
            self.bytes_read = min(self.size, self._position())
            self._check_ratio()
            yield block

    def _read(self, file: BinaryIO, size: int) -> bytes:
        """Some bytes; none at the end and where a member of an archive is damaged."""
        try:
            return file.read(size)
        except (zlib.error, lzma.LZMAError, zipfile.BadZipFile, EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk, not of what the file holds
            self._cut(f"the compressed data is damaged ({error})")
            return b""

    def _position(self) -> int:
        first = self._opened[0]
        return 0 if isinstance(first, zipfile.ZipFile) else first.tell()

    def _inflate(self, file: BinaryIO, begun: bytes = b"") -> Iterator[bytes]:
        """Inflate one or more gzip members; what inflates before the data ends or breaks is kept."""
        inflater = zlib.decompressobj(wbits=31)
        inside_member = False
        of_outer = file is self._opened[0]
        while compressed := begun + self._read(file, BLOCK_BYTES // 4):
            begun = b""
            if of_outer and self._inflated - self.checkpoints[-1].text_position >= _CHECKPOINT_BYTES:
                place = file.tell() - len(compressed)
                self.checkpoints.append(Checkpoint(place, self._inflated, inflater.copy()))
            self.bytes_read = min(self.size, self._position())
            while compressed:
                inside_member = True
                before = inflater.copy()
                try:
                    block = inflater.decompress(compressed, BLOCK_BYTES)
                except zlib.error as error:
                    rest = _until_it_breaks(before, compressed)
                    self._inflated += len(rest)
                    self._cut(f"the compressed data is damaged ({error})")
                    yield rest
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


def _of_macos(member: str) -> bool:
    """Whether a member of an archive is what macOS keeps beside files."""
    return member.startswith("__MACOSX/") or member.rpartition("/")[2].startswith("._")


def _until_it_breaks(inflater: "zlib._Decompress", compressed: bytes) -> bytes:
    """What inflates before damaged data; less than two blocks, as a whole call gave none."""
    found: list[bytes] = []
    with contextlib.suppress(zlib.error):
        # one byte after another, and extend keeps what came before the error
        found.extend(inflater.decompress(compressed[at : at + 1]) for at in range(len(compressed)))
    return b"".join(found)


def read_range(path: Path, offset: int, size: int, checkpoints: Sequence[Checkpoint] = (), bom_bytes: int = 0) -> bytes:
    """Some bytes of the uncompressed text, whose offsets do not count a byte order mark.

    Args:
        path: The file.
        offset: Of the first byte.
        size: How many.
        checkpoints: From reading a gzipped file; without them it is inflated from its beginning.
        bom_bytes: Of the byte order mark that the reading found.

    Raises:
        TraceError: The file cannot be read any more.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic[:2] != _GZIP_MAGIC and magic != _ZIP_MAGIC:
                file.seek(offset + bom_bytes)
                return file.read(size)
            if magic != _ZIP_MAGIC and checkpoints:
                return _inflate_range(file, offset + bom_bytes, size, checkpoints)
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}.") from error
    except zlib.error as error:
        raise TraceError(f"{path} has changed: its compressed data is damaged ({error}).") from error
    with TraceText(path, HealthReport()) as text:
        return _cut_out(text.blocks(), offset, size)


def find_checkpoints(path: Path) -> list[Checkpoint]:
    """Places from which a gzipped file can be read again; one at the beginning for all other files.

    Raises:
        TraceError: The file cannot be read.
    """
    with TraceText(path, HealthReport()) as text:
        for _ in text.blocks():
            if not text.packed:
                break
        return text.checkpoints


def _inflate_range(file: BinaryIO, offset: int, size: int, checkpoints: Sequence[Checkpoint]) -> bytes:
    """Inflate from the last checkpoint before the wanted bytes."""
    start = max((c for c in checkpoints if c.text_position <= offset), key=lambda c: c.text_position)
    file.seek(start.file_position)

    def blocks() -> Iterator[bytes]:
        inflater = start.inflater.copy()
        while compressed := file.read(BLOCK_BYTES // 4):
            while compressed:
                yield inflater.decompress(compressed, BLOCK_BYTES)
                compressed = inflater.unconsumed_tail
                if inflater.eof:
                    compressed = inflater.unused_data
                    inflater = zlib.decompressobj(wbits=31)
                    if not compressed.startswith(_GZIP_MAGIC):
                        break

    return _cut_out(blocks(), offset - start.text_position, size)


def _cut_out(blocks: Iterator[bytes], offset: int, size: int) -> bytes:
    kept: list[bytes] = []
    position, wanted_end = 0, offset + size
    for block in blocks:
        end = position + len(block)
        if end > offset:
            kept.append(block[max(0, offset - position) : wanted_end - position])
        position = end
        if position >= wanted_end:
            break
    return b"".join(kept)
