"""Values with large arrays as bytes for another process of ours: the arrays are neither pickled nor copied there."""

import mmap
import pickle
import struct
from typing import Any, BinaryIO

_ALIGNED_BYTES = 64
_LENGTH = struct.Struct("<Q")


def write(value: Any, out: BinaryIO) -> None:
    """Write a value; its arrays stand behind it, one after another.

    Raises:
        OSError: It cannot be written.
    """
    arrays: list[pickle.PickleBuffer] = []
    body = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    views = [array.raw() for array in arrays]
    head = pickle.dumps((body, [view.nbytes for view in views]))
    out.write(_LENGTH.pack(len(head)))
    out.write(head)
    position = _LENGTH.size + len(head)
    for view in views:
        gap = -position % _ALIGNED_BYTES
        out.write(bytes(gap))
        out.write(view)
        position += gap + view.nbytes


def parse(text: bytes | mmap.mmap) -> Any:
    """The value; its arrays can only be read and lie in `text`.

    Only for what a process of ours wrote: a pickle can run any code.
    """
    view = memoryview(text)
    position = _LENGTH.size + _LENGTH.unpack(view[: _LENGTH.size])[0]
    body, sizes = pickle.loads(view[_LENGTH.size : position])  # noqa: S301  (see above)
    views = []
    for size in sizes:
        position += -position % _ALIGNED_BYTES
        views.append(view[position : position + size])
        position += size
    return pickle.loads(body, buffers=views)  # noqa: S301
