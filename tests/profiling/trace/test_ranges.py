"""A range of a trace: its own events, and what the host did in it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gptscope.profiling.export.trace_markdown import trace_markdown
from gptscope.profiling.trace import open_trace
from gptscope.profiling.trace.analysis import Linked, host_busy_ns, summarise


def host(name: str, start: float, duration: float, tid: int = 9) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": tid, "ts": start, "dur": duration}


def test_the_host_is_busy_with_operators_that_began_before_the_range(write_trace):
    linked = Linked.of(open_trace(write_trace([host("aten::linear", 0, 100), host("aten::mm", 10, 20)])))
    assert host_busy_ns(Linked.of(linked, (40_000, 70_000))) == 30_000
    assert host_busy_ns(Linked.of(linked, (90_000, 120_000))) == 10_000


def test_the_host_is_busy_until_the_last_of_crossing_operators_ends(write_trace):
    linked = Linked.of(open_trace(write_trace([host("aten::linear", 0, 50), host("aten::mm", 40, 30)])))
    assert host_busy_ns(linked) == 70_000
    assert host_busy_ns(Linked.of(linked, (45_000, 65_000))) == 20_000


def test_thirds_of_a_real_trace_add_up_to_its_host_time(shared_traces: Path):
    for name in ("hta-a100-alexnet.json.gz", "kineto-h100-beforefix.json", "tl-mi300x-bert-small.json.gz"):
        linked = Linked.of(open_trace(shared_traces / "real" / name))
        edges = np.linspace(*linked.span_ns, 4).astype(np.int64).tolist()
        thirds = [host_busy_ns(Linked.of(linked, limits)) for limits in pairwise(edges)]
        assert sum(thirds) == host_busy_ns(linked) > 0


def test_a_range_counts_its_own_events(write_trace):
    at = {"pid": 9, "tid": 9, "name": "x"}
    events = [
        {"ph": "M", **at, "name": "thread_name", "args": {"name": "main"}},
        host("before", 0, 10),
        host("into", 5, 10),
        host("inside", 12, 1),
        host("after", 20, 5),
        {"ph": "i", **at, "ts": 11},
        {"ph": "i", **at, "ts": 20},
        {"ph": "C", **at, "ts": 13, "args": {"a": 1, "b": 2}},
        {"ph": "s", **at, "cat": "ac2g", "id": 1, "ts": 5},
        {"ph": "f", **at, "cat": "ac2g", "id": 1, "ts": 14},
    ]
    linked = Linked.of(open_trace(write_trace(events)))
    whole, part = summarise(linked), summarise(Linked.of(linked, (10_000, 20_000)))
    assert (whole.events, whole.timed_events) == (10, 4)
    assert (part.events, part.timed_events) == (2 + 1 + 1 + 1, 2)
    assert "5 events in 0.010 ms; operators on the host 0.005 ms." in trace_markdown(part, "x")
