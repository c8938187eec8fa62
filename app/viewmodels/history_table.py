"""The library's runs as a table."""

import numpy as np

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.setup import title_of
from gptscope.app.viewmodels.tables import Column, Table
from gptscope.profiling.store.entries import RunEntry

EMPTY = "No runs yet. Every run is kept here, and can be reopened, repeated and pinned as baseline."
NO_MATCH = "No run matches. Words are looked for in name, model, workload, levers, verdict, tags and notes."


def history_table(entries: tuple[RunEntry, ...], *, searching: bool = False) -> Table:
    """Name, speed, verdict first; then when and what; size and tags last, where a narrow window cuts off."""
    speed = np.asarray([_or_nan(e.headline.tokens_per_second) for e in entries], np.float64)
    latency = np.asarray([_or_nan(e.headline.itl_p50_ms or e.headline.step_ms) for e in entries], np.float64)
    memory = np.asarray([_or_nan(e.headline.memory_bytes) for e in entries], np.float64) / 1e6
    speedup = np.asarray([_or_nan(e.headline.speedup) for e in entries], np.float64)
    created = np.asarray([float(e.created_unix_ns) for e in entries], np.float64)
    names = [title_of(e.variant) if not e.variant.name else e.name for e in entries]
    verdicts = [e.headline.verdict or e.outcome for e in entries]
    models = [model_title(e.model) for e in entries]
    works = [workload_title(e) for e in entries]
    tags = [", ".join(e.tags) for e in entries]
    columns = (
        Column(title="Run", values=names, text=lambda i: names[i], width=160, stretch=True, strong=True),
        Column(title="Tokens/s", values=speed, text=lambda i: fmt.number(float(speed[i])), look="number", width=70),
        Column(title="p50 ms", values=latency, text=lambda i: fmt.number(float(latency[i])), look="number", width=62),
        Column(
            title="Speedup",
            values=speedup,
            text=lambda i: fmt.ratio(float(speedup[i])) if speedup[i] == speedup[i] else "",
            look="number",
            width=66,
            tip="Against the baseline of its own experiment",
            tone=lambda i: _tone(float(speedup[i])),
        ),
        Column(title="Outcome", values=verdicts, text=lambda i: verdicts[i], width=160),
        Column(
            title="Begun", values=created, text=lambda i: fmt.when(entries[i].created_unix_ns), look="number", width=128
        ),
        Column(title="Model", values=models, text=lambda i: models[i], width=108),
        Column(title="Workload", values=works, text=lambda i: works[i], width=190),
        Column(title="Memory MB", values=memory, text=lambda i: fmt.number(float(memory[i])), look="number", width=92),
        Column(title="Tags", values=tags, text=lambda i: tags[i], width=70),
    )
    return Table(
        columns=columns,
        rows=len(entries),
        keys=[e.run_id for e in entries],
        default_sort=5,
        empty=NO_MATCH if searching else EMPTY,
    )


def model_title(source: str) -> str:
    """A model source, shortened to its last part."""
    return source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def workload_title(entry: RunEntry) -> str:
    """`decode, batch 1, context 128`."""
    work = entry.workload
    return f"{work.kind}, batch {work.batch}, context {work.context}"


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _tone(speedup: float) -> str:
    return "" if speedup != speedup or abs(speedup - 1) < 0.02 else "good" if speedup > 1 else "bad"
