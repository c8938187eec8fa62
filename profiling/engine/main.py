"""Command line of the engine process."""

import argparse
import asyncio
import json
import os
import sys
from typing import BinaryIO

import msgspec

from gptscope.profiling.engine.engine import Engine, default_worker_command
from gptscope.profiling.engine.limits import Limits


def main(frames: BinaryIO) -> None:
    """Serve one client on stdin and `frames` until it leaves, then end the process.

    Args:
        frames: The protected standard output.
    """
    parser = argparse.ArgumentParser(prog="python -P -m gptscope.profiling.engine", description=__doc__)
    parser.add_argument("--worker-command", type=json.loads, help="JSON list: how to start a worker")
    parser.add_argument("--limits", default="{}", help="JSON object: seconds of silence allowed, see engine/limits.py")
    options = parser.parse_args()
    command = options.worker_command or default_worker_command()
    limits = msgspec.json.decode(options.limits, type=Limits)
    asyncio.run(_serve(frames, command, limits))
    # A thread may still wait for a frame on stdin; ending must not wait for it.
    sys.stderr.flush()
    os._exit(0)


async def _serve(frames: BinaryIO, command: list[str], limits: Limits) -> None:
    await Engine(frames, command, limits).serve()
