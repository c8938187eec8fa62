"""What a trace can be exported as, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gptscope.profiling.export.perfetto import export_perfetto
from gptscope.profiling.export.stacks import export_folded, export_speedscope
from gptscope.profiling.export.tensorboard import export_tensorboard
from gptscope.profiling.export.trace_markdown import export_markdown
from gptscope.profiling.export.trace_tables import export_table_csv, export_table_npz
from gptscope.profiling.trace.analysis import Linked, summarise

Write = Callable[[Linked, str, Path, str], Path]
"""Trace (or a range of it), its name, where to, which table -> the file."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format."""

    summary: str
    ending: str
    """Of files; empty: a folder."""
    write: Write


TRACE_FORMATS: dict[str, TraceFormat] = {
    "chrome": TraceFormat(
        "Chrome JSON for Perfetto and chrome://tracing; gzipped when the name ends in .gz",
        ".json.gz",
        lambda linked, _, path, __: export_perfetto(linked.trace, path, linked.range_ns, overwrite=True),
    ),
    "tensorboard": TraceFormat(
        "a log folder for TensorBoard's profiler plugin (torch-tb-profiler)",
        "",
        lambda linked, name, path, _: export_tensorboard(linked.trace, path, name, linked.range_ns, overwrite=True),
    ),
    "csv": TraceFormat(
        "one table for spreadsheets",
        ".csv",
        lambda linked, _, path, table: export_table_csv(linked, table, path, overwrite=True),
    ),
    "npz": TraceFormat(
        "one table as numpy arrays",
        ".npz",
        lambda linked, _, path, table: export_table_npz(linked, table, path, overwrite=True),
    ),
    "speedscope": TraceFormat(
        "speedscope.app",
        ".speedscope.json",
        lambda linked, _, path, __: export_speedscope(linked.trace, path, linked.range_ns, overwrite=True),
    ),
    "folded": TraceFormat(
        "folded stacks for flame graph tools, in nanoseconds",
        ".folded",
        lambda linked, _, path, __: export_folded(linked.trace, path, linked.range_ns, overwrite=True),
    ),
    "markdown": TraceFormat(
        "a summary for a pull request",
        ".md",
        lambda linked, name, path, _: export_markdown(summarise(linked), name, path, overwrite=True),
    ),
}
