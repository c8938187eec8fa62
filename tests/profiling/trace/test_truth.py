"""Every real trace equals the numbers that another program computed with exact whole numbers."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from gptscope.profiling.trace import Trace, open_trace, step_windows
from gptscope.profiling.trace.analysis import Linked, copy_sums, device_use, graph_sums, kernel_sums, launch_sums
from gptscope.profiling.trace.intervals import overlaps_on_streams, union_ns
from gptscope.profiling.trace.table import OLD_CATEGORIES

MODERN_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
"""The truth does not count the work of other devices."""


@lru_cache(maxsize=1)
def opened(path: Path) -> Trace:
    return open_trace(path)


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    import os

    root = Path(__file__).resolve().parents[3]
    folder = Path(os.environ.get("GPTSCOPE_SHARED_TRACES", root.parent / "shared" / "traces"))
    names = sorted(p.name.removesuffix(".truth.json") for p in (folder / "truth").glob("*.truth.json"))
    absent = [pytest.param("none", marks=pytest.mark.skip("no shared traces"))]
    metafunc.parametrize("stem", names or absent, scope="module")  # all tests of one trace, then the next trace


def truth_and_trace(stem: str, folder: Path) -> tuple[dict[str, Any], Trace]:
    truth = json.loads((folder / "truth" / f"{stem}.truth.json").read_text())
    return truth, opened(folder / "real" / truth["file"])


def test_events_and_times_equal_the_truth_to_the_nanosecond(stem: str, shared_traces: Path):
    truth, trace = truth_and_trace(stem, shared_traces)
    assert trace.phases == truth["ph"]
    by_category: dict[str, int] = {}
    for category, count in truth["x_by_cat"].items():
        modern = OLD_CATEGORIES.get(category, category)
        by_category[modern] = by_category.get(modern, 0) + count
    if "B" not in truth["ph"]:
        for category, count in by_category.items():
            assert int(trace.in_categories(category).sum()) == count
    kernels, work = trace.in_categories("kernel"), trace.in_categories(*MODERN_GPU) & ~trace.unfinished
    assert int(kernels.sum()) == truth["kernels"]
    assert int(trace.duration_ns[kernels].sum()) == ns(truth["kernel_total_us"])
    assert union_ns(trace.start_ns[kernels], trace.end_ns[kernels]) == ns(truth["kernel_union_us"])
    assert int(work.sum()) == truth["gpu_events"]
    assert int(trace.duration_ns[work].sum()) == ns(truth["gpu_total_us"])
    windows = step_windows(trace)
    lengths = sorted((windows.end_ns - windows.start_ns).tolist()) if windows.marked else []
    assert lengths == sorted(ns(us) for _, us in truth["profiler_steps"])


def test_devices_streams_and_copies_equal_the_truth(stem: str, shared_traces: Path):
    truth, trace = truth_and_trace(stem, shared_traces)
    if trace.in_categories("mtia_ccp_events").any():
        return  # work for us, not for the truth
    linked = Linked.of(trace)
    assert {str(use.device): use.busy_ns for use in device_use(linked)} == {
        device: ns(us) for device, us in truth["gpu_busy_union_us_per_device"].items()
    }
    if len(linked.devices) == 1:
        (use,) = device_use(linked)
        assert use.window_ns == ns(truth["gpu_window_us"])
        assert use.idle_ns == ns(truth["gpu_idle_us"])
        assert use.streams == len(truth["streams"])
    assert overlaps_on_streams(trace) == truth["same_stream_overlaps"]
    for copy in copy_sums(linked):
        expected = truth["memory"][copy.name[:160]]
        assert (copy.calls, copy.total_ns) == (expected["count"], ns(expected["us"]))
        if expected.get("bytes"):
            assert copy.bytes == expected["bytes"]
        if expected.get("GBps") and copy.bytes_per_s:
            assert copy.bytes_per_s / 1e9 == pytest.approx(expected["GBps"], abs=1e-3)
    launches = launch_sums(linked)
    assert launches.launched_before == truth["gpu_without_launch"]
    most = max((graph.most_kernels for graph in graph_sums(linked)), default=min(1, launches.launched))
    assert most == truth["max_gpu_per_correlation"] or launches.launched_before


def test_the_longest_kernels_equal_the_truth(stem: str, shared_traces: Path):
    truth, trace = truth_and_trace(stem, shared_traces)
    if trace.in_categories("mtia_ccp_events").any():
        return
    totals: dict[str, list[int]] = {}
    for row in kernel_sums(Linked.of(trace)):
        sums = totals.setdefault(row.name, [0, 0, 0])
        sums[0] += row.total_ns
        sums[1] += row.calls
        sums[2] = max(sums[2], row.max_ns)
    for kernel in truth["top10"]:
        alike = [sums for name, sums in totals.items() if name[:160] == kernel["name"]]
        assert [ns(kernel["total_us"]), kernel["count"], ns(kernel["max_us"])] in alike
