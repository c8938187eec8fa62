"""The library's runs as a table."""

import dataclasses

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.columns import floats, numbers, speedups, text
from gptscope.app.viewmodels.tables import Column, Table
from gptscope.app.viewmodels.variant_names import run_title
from gptscope.profiling.metrics.verdict import TITLES
from gptscope.profiling.store.entries import RunEntry

EMPTY = "No runs yet. Every run is kept here, and can be reopened, repeated and pinned as baseline."
NO_MATCH = "No run matches. Words are looked for in name, model, workload, levers, verdict, tags and notes."


def history_table(entries: tuple[RunEntry, ...], *, searching: bool = False) -> Table:
    """Name, speed, verdict first; then when and what; size and tags last, where a narrow window cuts off."""
    created = floats([e.created_unix_ns for e in entries])
    names = [run_title(e.name, e.variant) for e in entries]
    columns = (
        text("Run", names, width=160, stretch=True, strong=True),
        numbers("Tokens/s", [e.headline.tokens_per_second for e in entries], width=70),
        numbers("p50 ms", [e.headline.itl_p50_ms or e.headline.step_ms for e in entries], width=62),
        _speedups(entries),
        text("Outcome", [e.headline.verdict or e.outcome for e in entries], width=160, missing=""),
        Column(
            title="Begun", values=created, text=lambda i: fmt.when(entries[i].created_unix_ns), look="number", width=128
        ),
        text("Model", [model_title(e.model) for e in entries], width=108, missing=""),
        text("Workload", [workload_title(e) for e in entries], width=190),
        numbers("Memory MB", [e.headline.memory_bytes for e in entries], scale=1e6, width=92),
        text("Tags", [", ".join(e.tags) for e in entries], width=70, missing=""),
    )
    return Table(
        columns=columns,
        rows=len(entries),
        keys=[e.run_id for e in entries],
        default_sort=5,
        empty=NO_MATCH if searching else EMPTY,
    )


def _speedups(entries: tuple[RunEntry, ...]) -> Column:
    """Green or red only where the verdict beside it says that there is a difference."""
    column = speedups(
        "Speedup",
        [e.headline.speedup for e in entries],
        width=66,
        tip="Against the baseline of its own experiment",
        missing="",
    )
    tone = column.tone
    assert tone is not None
    sure = [e.headline.verdict not in ("", TITLES["no_real_difference"]) for e in entries]
    return dataclasses.replace(column, tone=lambda row: tone(row) if sure[row] else "")


def model_title(source: str) -> str:
    """A model source, shortened to its last part."""
    return source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def workload_title(entry: RunEntry) -> str:
    """`decode, batch 1, context 128`."""
    work = entry.workload
    return f"{work.kind}, batch {work.batch}, context {work.context}"
