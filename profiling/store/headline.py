"""The few numbers a list of runs shows, from the records of the run. Metrics are imported when they are needed."""

from collections.abc import Iterable, Sequence

import msgspec
from gptscope.profiling.records import Quality, Record
from gptscope.profiling.store.entries import Headline


def with_verdicts(records: Iterable[Record], run_ids: Sequence[str]) -> dict[str, Headline]:
    """Headlines of an experiment's candidates with the verdict on each; `run_ids` begins with the baseline."""
    from gptscope.profiling.metrics.compare import compare_runs

    stream = list(records)
    headlines = {}
    for run_id in run_ids[1:]:
        quality = next((r for r in stream if isinstance(r, Quality) and r.run_id == run_id), None)
        verdict = compare_runs(stream, stream, quality, baseline_id=run_ids[0], candidate_id=run_id)
        headlines[run_id] = msgspec.structs.replace(
            headline_of(stream, run_id),
            speedup=verdict.speedup.value if verdict.speedup is not None else None,
            verdict=verdict.title,
        )
    return headlines


def headline_of(records: Iterable[Record], run_id: str) -> Headline:
    """Headline numbers of one run in a stream that may end anywhere; what was not measured stays None."""
    from gptscope.profiling.metrics.summary import summarise

    stream = list(records)
    summary = summarise(stream, run_id)
    quality = next((r for r in stream if isinstance(r, Quality) and r.run_id == run_id), None)
    return Headline(
        tokens_per_second=summary.tokens_per_s.value if summary.tokens_per_s is not None else None,
        ttft_ms=summary.ttft.p50_ms if summary.ttft is not None else None,
        itl_p50_ms=summary.itl.p50_ms if summary.itl is not None else None,
        step_ms=summary.step_time.p50_ms if summary.step_time is not None else None,
        memory_bytes=summary.peak_device_bytes or summary.peak_process_bytes,
        perplexity=quality.perplexity if quality is not None else None,
    )
