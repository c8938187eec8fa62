"""Works ahead on a thread of its own: while one block is decoded the next is inflated, which needs no interpreter."""

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator

_BLOCKS = 4
"""Finished blocks that may wait."""


def ahead(blocks: Iterator[bytes]) -> Generator[bytes]:
    """The same blocks, made on another thread; what that raises is raised here, and stopping early stops it too."""
    done: queue.Queue[bytes | BaseException | None] = queue.Queue(_BLOCKS)
    stopped = threading.Event()

    def put(item: bytes | BaseException | None) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                done.put(item, timeout=0.1)
                return

    def work() -> None:
        try:
            for block in blocks:
                put(block)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001  (raised on the thread that waits for the block)
            put(error)

    thread = threading.Thread(target=work, name="inflate", daemon=True)
    thread.start()
    try:
        while (item := done.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()
