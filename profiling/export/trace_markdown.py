"""A trace's summary as Markdown, for a pull request or an issue."""

from collections.abc import Iterable
from pathlib import Path

from gptscope.profiling.export.files import write_whole
from gptscope.profiling.printable import printable
from gptscope.profiling.trace.analysis import TraceSummary

_MOST_ROWS = 12


def export_markdown(summary: TraceSummary, name: str, path: Path, *, overwrite: bool = False) -> Path:
    """Write the summary; `ExportError` as `write_whole`."""
    return write_whole(path, [trace_markdown(summary, name).encode()], overwrite=overwrite)


def trace_markdown(summary: TraceSummary, name: str) -> str:
    """The text."""
    parts = [f"## Trace {_plain(name)}", _overview(summary)]
    if summary.advice:
        parts.append("\n".join(f"* {_plain(advice.sentence)}" for advice in summary.advice))
    what = "kernel" if summary.has_device else "operator"
    parts.append(
        _table(
            (what, "category", "calls", "total ms", "mean us", "share"),
            (
                (k.short, k.category, str(k.calls), _ms(k.total_ns), f"{k.mean_ns / 1e3:.1f}", f"{k.share:.1%}")
                for k in summary.kernels[:_MOST_ROWS]
            ),
        )
    )
    parts.append(
        _table(
            ("category", "calls", "total ms", "share"),
            ((c.category, str(c.calls), _ms(c.total_ns), f"{c.share:.1%}") for c in summary.categories),
        )
    )
    if len(summary.steps) > 1:
        parts.append(
            _table(
                ("step", "wall ms", "device busy ms"),
                ((s.name, _ms(s.wall_ns), _ms(s.device_busy_ns)) for s in summary.steps[:_MOST_ROWS]),
            )
        )
    if summary.gaps:
        parts.append(
            _table(
                ("idle because", "device", "gaps", "total ms", "median us"),
                (
                    (g.cause, str(g.device), str(g.gaps), _ms(g.total_ns), f"{g.median_ns / 1e3:.1f}")
                    for g in summary.gaps
                ),
            )
        )
    if summary.health:
        parts.append("\n".join(f"* {note.kind}: {_plain(note.message)} ({note.count})" for note in summary.health))
    return "\n\n".join(parts) + "\n"


def _overview(summary: TraceSummary) -> str:
    span, host = _ms(summary.span_ns), _ms(summary.host_busy_ns)
    lines = [f"{summary.events} events in {span} ms; operators on the host {host} ms."]
    lines += [
        f"GPU {use.device} {_plain(use.name)}: busy {_ms(use.busy_ns)} of {_ms(use.window_ns)} ms"
        f" ({use.busy_share:.0%}), {use.kernels} kernels, communication {_ms(use.communication_ns)} ms"
        f" ({_ms(use.exposed_communication_ns)} ms exposed), copies {_ms(use.copy_ns)} ms."
        for use in summary.devices
    ]
    return "  \n".join(lines)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    align = "|" + "|".join("---" if i == 0 else "---:" for i in range(len(head))) + "|"
    body = ["| " + " | ".join(_plain(cell) for cell in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", align, *body])


def _plain(text: str) -> str:
    """Text that Markdown does not take for something else."""
    text = printable(" ".join(text.split()))
    for character in "\\`*_<>|[]#":
        text = text.replace(character, f"\\{character}")
    return text


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f}"
