"""Values with large arrays, handed to another process through a file: there the arrays are mapped, not copied."""

import mmap
from pathlib import Path
from typing import Any

from gptscope.profiling import handover


def write(value: Any, file: Path) -> None:
    """Write a value.

    Raises:
        OSError: The file cannot be written.
    """
    with file.open("wb") as out:
        handover.write(value, out)


def read(file: Path) -> Any:
    """The value; its arrays can only be read, and cost memory where they are looked at.

    Only for files that a process of ours wrote: a pickle can run any code.

    Raises:
        OSError: The file cannot be read.
    """
    with file.open("rb") as opened:
        return handover.parse(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
