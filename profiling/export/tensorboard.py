"""A folder that TensorBoard's profiler plugin (`torch-tb-profiler`) reads.

The plugin was last released in 2023 and knows only the category names of that time: with today's names of runtime calls
its device times of operators are all 0. So these are written under the name that it knows.
"""

from pathlib import Path

from gptscope.profiling.export.files import ExportError, write_whole
from gptscope.profiling.export.perfetto import gzipped, perfetto_json
from gptscope.profiling.trace import Trace

_KNOWN_NAME = "Runtime"


def export_tensorboard(
    trace: Trace, folder: Path, run: str, range_ns: tuple[int, int] | None = None, *, overwrite: bool = False
) -> Path:
    """Write `FOLDER/RUN/rank0.pt.trace.json.gz`; `tensorboard --logdir FOLDER` shows it.

    Args:
        trace: From `open_trace`.
        folder: TensorBoard's log folder; made when it is missing, other runs in it stay.
        run: Name of the run.
        range_ns: Only what lies in this time.
        overwrite: Replace a run of that name.

    Returns:
        The file.

    Raises:
        ExportError: It cannot be written.
    """
    path = folder / run / f"rank{trace.rank}.pt.trace.json.gz"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{path.parent} cannot be made: {error.strerror}. Choose another folder.") from error
    calls = {name: _KNOWN_NAME for name in trace.categories if name.endswith(("_runtime", "_driver"))}
    return write_whole(path, gzipped(perfetto_json(trace, range_ns, calls)), overwrite=overwrite)
