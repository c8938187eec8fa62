"""From a recording to records: kernel and operator tables, evidence for each lever, and the trace itself in pieces."""

import errno
import zlib
from pathlib import Path

from gptscope.models.decoding.speculation import DRAFT_TIME_SHARE
from gptscope.models.levers import KernelFact, ProfileFacts
from gptscope.models.prepare import PreparedModel
from gptscope.profiling.channel import MAX_PAYLOAD_BYTES
from gptscope.profiling.records import EvidenceItem, EvidenceReport, KernelRow, Profile, TraceChunk
from gptscope.profiling.trace import Trace, kernel_table, open_trace, operator_table, profiled_time
from gptscope.profiling.trace.names import of_draft
from gptscope.profiling.worker.capture import Recording
from gptscope.profiling.worker.output import Output

_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 3
"""Half the time of the usual level 6 for traces, and a tenth larger."""
_READ_BYTES = 1 << 20


def profile_record(recording: Recording, overhead: float, run_id: str) -> Profile:
    """Read the trace back and sum up its kernels and operators.

    Raises:
        OSError: The trace was cut off while it was written, which happens on a full disk.
    """
    trace = open_trace(recording.trace)
    _check_complete(trace, recording.trace)
    times = profiled_time(trace)
    notes = recording.notes + tuple(note.message for note in trace.health if note.kind != "ignored")
    return Profile(
        run_id=run_id,
        steps=recording.tokens,
        overhead=overhead,
        wall_us=times.wall_ns / 1e3,
        busy_us=times.busy_ns / 1e3,
        kernels=tuple(kernel_table(trace)),
        device=times.device,
        notes=notes,
        operators=tuple(operator_table(trace)),
    )


def _check_complete(trace: Trace, path: Path) -> None:
    if any(note.kind == "truncated" for note in trace.health):
        raise OSError(errno.ENOSPC, "the trace was cut off while it was written", str(path.parent))


def evidence_record(prepared: PreparedModel, profile: Profile, steps: int, run_id: str) -> EvidenceReport:
    """What the profile says about every lever that is on. A draft model's kernels say nothing about them.

    Args:
        prepared: The model with its levers.
        profile: Its kernels.
        steps: Forward passes that were recorded; fewer than tokens where guesses were accepted.
        run_id: The run.
    """
    counters = prepared.counters()
    if prepared.draft is not None:
        counters[DRAFT_TIME_SHARE] = sum(row.share for row in profile.kernels if of_draft(row.module))
    facts = ProfileFacts(
        kernels=[_fact(row) for row in profile.kernels if not of_draft(row.module)],
        steps=steps,
        n_layer=prepared.config.n_layer,
        workload=prepared.context.workload,
        device=profile.device,
        counters=counters,
    )
    items = [
        EvidenceItem(lever=one.lever, in_effect=one.in_effect, sentence=one.sentence)
        for one in prepared.evidence(facts)
    ]
    return EvidenceReport(run_id=run_id, items=tuple(items))


def _fact(row: KernelRow) -> KernelFact:
    return KernelFact(
        name=row.name,
        calls=row.calls,
        self_time_us=row.self_time_us,
        module=row.module,
        dtypes=row.dtypes,
        input_shapes=row.input_shapes,
    )


def send_trace(path: Path, output: Output, run_id: str) -> None:
    """Send the trace as it was recorded, gzipped on the way, in pieces of at most `MAX_PAYLOAD_BYTES`."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    total, read = path.stat().st_size, 0
    waiting = bytearray()
    offset = 0
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            waiting += packer.compress(block)
            read += len(block)
            while len(waiting) > MAX_PAYLOAD_BYTES:
                offset = _send(waiting, MAX_PAYLOAD_BYTES, offset, output, run_id, last=False)
            output.progress("profile", read, total, "bytes", "packing the trace")
    waiting += packer.flush()
    while len(waiting) > MAX_PAYLOAD_BYTES:
        offset = _send(waiting, MAX_PAYLOAD_BYTES, offset, output, run_id, last=False)
    _send(waiting, len(waiting), offset, output, run_id, last=True)


def _send(waiting: bytearray, size: int, offset: int, output: Output, run_id: str, *, last: bool) -> int:
    output.emit(TraceChunk(run_id=run_id, offset=offset, last=last), bytes(waiting[:size]))
    del waiting[:size]
    return offset + size
