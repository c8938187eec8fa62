"""Values with large arrays, handed to another process through a file: there the arrays are mapped, not copied."""

import mmap
import pickle
import struct
from pathlib import Path
from typing import Any

_ALIGNED_BYTES = 64
_LENGTH = struct.Struct("<Q")


def write(value: Any, file: Path) -> None:
    """Write a value; its arrays stand behind it, one after another.

    Raises:
        OSError: The file cannot be written.
    """
    arrays: list[pickle.PickleBuffer] = []
    body = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    views = [array.raw() for array in arrays]
    head = pickle.dumps((body, [view.nbytes for view in views]))
    with file.open("wb") as out:
        out.write(_LENGTH.pack(len(head)))
        out.write(head)
        for view in views:
            out.write(bytes(-out.tell() % _ALIGNED_BYTES))
            out.write(view)


def read(file: Path) -> Any:
    """The value; its arrays can only be read, and cost memory where they are looked at.

    Only for files that a process of ours wrote: a pickle can run any code.

    Raises:
        OSError: The file cannot be read.
    """
    with file.open("rb") as opened:
        text = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    position = _LENGTH.size + _LENGTH.unpack(text[: _LENGTH.size])[0]
    body, sizes = pickle.loads(text[_LENGTH.size : position])  # noqa: S301  (see above)
    views = []
    for size in sizes:
        position += -position % _ALIGNED_BYTES
        views.append(text[position : position + size])
        position += size
    return pickle.loads(body, buffers=views)  # noqa: S301
