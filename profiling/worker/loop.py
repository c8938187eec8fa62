"""Reads commands, does one at a time, answers with records. Whatever fails, the worker stays alive for the next one."""

import contextlib
import importlib.metadata
import os
import sys
import threading
from typing import TYPE_CHECKING, BinaryIO

from gptscope.profiling import channel
from gptscope.profiling.machine.compiler import find_compiler
from gptscope.profiling.records import (
    AskCapabilities,
    Bye,
    Calibrate,
    Command,
    CommandDone,
    EvaluateWindow,
    Failure,
    FetchModel,
    FineTune,
    ForceTokens,
    GreedyPrompt,
    Hello,
    InspectModel,
    Leave,
    LoadVariant,
    MapLayers,
    MeasurePeaks,
    RecordProfile,
    RunSlice,
    SaveModel,
    TrainSeed,
    WarmUp,
)
from gptscope.profiling.temp_folders import lend_to_children, sweep_left_over_folders
from gptscope.profiling.worker.failures import failure_of
from gptscope.profiling.worker.output import Output

if TYPE_CHECKING:
    from gptscope.profiling.worker.commands import Commands

_KINETO_SILENT = "6"
"""Above its last level; below it Kineto prints `USDT:` lines whenever the profiler starts."""


def run(frames: BinaryIO) -> None:
    """Serve the engine until it says `Leave` or closes our input.

    Args:
        frames: The protected standard output.
    """
    environment = dict(os.environ)
    os.environ.setdefault("KINETO_LOG_LEVEL", _KINETO_SILENT)
    output = Output(channel.FrameWriter(frames))
    output.emit(Hello(role="worker", pid=os.getpid(), gptscope_version=importlib.metadata.version("gptscope")))
    sweep_left_over_folders()
    with contextlib.suppress(OSError):  # no room there: whoever needs some says so
        lend_to_children()
    threading.Thread(target=find_compiler, name="try-compiler", daemon=True).start()
    _serve(output, environment)


def _serve(output: Output, environment: dict[str, str]) -> None:
    """Import what every command needs, then do them as they come."""
    commands = _import_commands(output, environment)
    for header, _payload in channel.read_frames(sys.stdin.fileno()):
        try:
            command = channel.decode_command(header)
        except channel.ChannelError as unreadable:
            output.emit(Failure(kind="internal", message=str(unreadable), run_id=output.run_id))
            output.emit(CommandDone(command="unknown"))
            continue
        if isinstance(command, Leave):
            output.emit(Bye())
            return
        error = commands if isinstance(commands, Exception) else _try(commands, command)
        if error is not None:
            output.emit(failure_of(error, _DOING.get(type(command), "working"), output.run_id))
        output.emit(CommandDone(command=str(command.__struct_config__.tag)))


def _import_commands(output: Output, environment: dict[str, str]) -> "Commands | Exception":
    """Import torch, in the main thread because Kineto wants it so; a failure is told when the first command comes."""
    try:
        from gptscope.profiling.worker.commands import Commands

        return Commands(output, environment)
    except Exception as error:  # noqa: BLE001
        return error


def _try(commands: "Commands", command: Command) -> Exception | None:
    try:
        commands.do(command)
    except Exception as error:  # noqa: BLE001 - everything is told to the engine, and the worker lives on
        return error
    return None


_DOING: dict[type[Command], str] = {
    LoadVariant: "loading the model",
    WarmUp: "warming up",
    RunSlice: "measuring",
    RecordProfile: "profiling",
    EvaluateWindow: "evaluating the output",
    GreedyPrompt: "continuing a prompt",
    ForceTokens: "judging a continuation",
    MapLayers: "mapping the layers",
    TrainSeed: "training with another seed",
    AskCapabilities: "finding out what this machine offers",
    InspectModel: "inspecting the model",
    FetchModel: "fetching the model",
    SaveModel: "saving the model",
    FineTune: "fine-tuning",
    Calibrate: "calibrating",
    MeasurePeaks: "measuring this machine's peaks",
}
