"""The few numbers a list of runs shows, from the records of the run. Metrics are imported when they are needed."""

import logging
from collections.abc import Iterable, Sequence

import msgspec

from gptscope.profiling.records import Quality, Record
from gptscope.profiling.store.entries import Headline

logger = logging.getLogger(__name__)


def headline_of(records: Iterable[Record], run_id: str) -> Headline:
    """Headline numbers of one run in a stream that may end anywhere; what was not measured stays None."""
    try:
        return _headline_of(list(records), run_id)
    except Exception:  # a fault in a summary must not cost the records, which hold everything
        logger.exception("The headline numbers of run %s could not be made.", run_id)
        return Headline()


def with_verdicts(records: Iterable[Record], run_ids: Sequence[str]) -> dict[str, Headline]:
    """Headlines of an experiment's candidates with the verdict on each; `run_ids` begins with the baseline."""
    stream = list(records)
    headlines = {}
    for run_id in run_ids[1:]:
        try:
            headlines[run_id] = _judged(stream, run_ids[0], run_id)
        except Exception:  # as above
            logger.exception("The verdict on run %s could not be made.", run_id)
    return headlines


def _judged(stream: list[Record], baseline_id: str, run_id: str) -> Headline:
    from gptscope.profiling.metrics.compare import compare_runs

    quality = next((r for r in stream if isinstance(r, Quality) and r.run_id == run_id), None)
    verdict = compare_runs(stream, stream, quality, baseline_id=baseline_id, candidate_id=run_id)
    speedup = verdict.speedup.value if verdict.speedup is not None else None
    return msgspec.structs.replace(_headline_of(stream, run_id), speedup=speedup, verdict=verdict.title)


def _headline_of(stream: list[Record], run_id: str) -> Headline:
    from gptscope.profiling.metrics.summary import summarise

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
