"""Seconds and memory to open a large trace and make all its tables, beside the floor and beside other tools.

    python benchmarks/trace_load.py [--events 1000000] [--kind cpu|gpu] [--gz] [--tool PYTHON] [--folder DIR]

Traces are generated: `cpu` is nested operators with shapes (about 400 MB per million events), `gpu` operators,
launches, kernels and arrows (about 250 MB). Every measurement runs in a process of its own, `--times` times, the best
counts; a peak is that of all its processes together. The floor is msgspec decoding the whole file at once into typed
objects with the same fields, without tables. `--tool` names a Python that has `HolisticTraceAnalysis` and
`torch-tb-profiler` (the extra `traces`); they load and summarise the same file.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trace_generator import generate


def measure_ours(path: Path) -> None:
    from gptscope.profiling.trace import open_trace
    from gptscope.profiling.trace.analysis import Linked, summarise

    begun = time.perf_counter()
    trace = open_trace(path)
    loaded = time.perf_counter()
    both_bytes = sum(peaks_bytes())  # of this process and of the one that reads the second half meanwhile
    summary = summarise(Linked.of(trace))
    done = time.perf_counter()
    numbers = {"load": loaded - begun, "tables": done - loaded, "total": done - begun, "rows": len(trace)}
    report(**numbers, kernels=len(summary.kernels), both_bytes=both_bytes)


def measure_floor(path: Path) -> None:
    import msgspec

    from gptscope.profiling.trace.events import Event

    class Document(msgspec.Struct, gc=False):
        """A whole trace, with the fields that our reader uses."""

        traceEvents: list[Event]  # noqa: N815  (its name in the file)

    begun = time.perf_counter()
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    document = msgspec.json.Decoder(Document).decode(data)
    report(total=time.perf_counter() - begun, rows=len(document.traceEvents))


def measure_hta(path: Path) -> None:
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]

    begun = time.perf_counter()
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir="")
    loaded = time.perf_counter()
    try:
        analysis.get_gpu_kernel_breakdown(visualize=False)
        analysis.get_temporal_breakdown(visualize=False)
    except Exception as error:  # noqa: BLE001  (it cannot summarise a trace without kernels)
        print("HTA:", error, file=sys.stderr)
    report(load=loaded - begun, total=time.perf_counter() - begun, rows=0)


def measure_tensorboard(path: Path) -> None:
    from torch_tb_profiler.profiler.data import RunProfileData  # type: ignore[import-not-found]

    begun = time.perf_counter()
    data = RunProfileData.parse("rank0", 0, str(path), tempfile.gettempdir())
    data.process()
    report(total=time.perf_counter() - begun, rows=len(data.events))


def peaks_bytes() -> list[int]:
    """Resident memory of this process at most so far, and of the largest one that it started and that has ended."""
    return [resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


def report(both_bytes: int = 0, **numbers: float) -> None:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)  # on a busy machine it is steadier than the clock
    print(json.dumps({**numbers, "cpu": cpu, "peak_bytes": max(*peaks_bytes(), both_bytes)}))


MEASURES = {"ours": measure_ours, "floor": measure_floor, "hta": measure_hta, "tensorboard": measure_tensorboard}


def run(python: str, what: str, path: Path, times: int) -> dict[str, float] | None:
    """The best of some processes."""
    best: dict[str, float] | None = None
    for _ in range(times):
        command = [python, __file__, "--measure", what, "--file", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{what} failed:\n{done.stderr[-800:]}")
            return None
        found = json.loads(done.stdout.splitlines()[-1])
        best = found if best is None or found["total"] < best["total"] else best
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--gz", action="store_true", help="gzipped")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--tool", help="a Python with HTA and torch-tb-profiler, to measure them too")
    parser.add_argument("--folder", type=Path, help="keep the generated trace here and use it again")
    parser.add_argument("--generate-only", action="store_true")
    parser.add_argument("--measure", choices=tuple(MEASURES), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        MEASURES[options.measure](options.file)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        path = folder / f"{options.kind}-{options.events}.pt.trace.json{'.gz' if options.gz else ''}"
        if not path.exists():
            generate(path, options.kind, options.events)
        if options.generate_only:
            return 0
        return compare(options, path)


def compare(options: argparse.Namespace, path: Path) -> int:
    """Print the table; 1 when a figure is not met."""
    print(f"{path.name}: {options.events} events, {path.stat().st_size / 1e6:.0f} MB")
    found = {what: run(sys.executable, what, path, options.times) for what in ("floor", "ours")}
    if options.tool:
        found |= {what: run(options.tool, what, path, 1) for what in ("hta", "tensorboard")}
    ours = found["ours"]
    assert ours is not None
    print(f"  {'':<12}{'load s':>9}{'total s':>9}{'times ours':>12}{'cpu s':>9}{'peak MB':>9}{'times ours':>12}")
    for what, numbers in found.items():
        if numbers is not None:
            load = f"{numbers['load']:.2f}" if "load" in numbers else ""
            print(
                f"  {what:<12}{load:>9}{numbers['total']:>9.2f}{numbers['total'] / ours['total']:>12.2f}"
                f"{numbers['cpu']:>9.2f}{numbers['peak_bytes'] / 1e6:>9.0f}"
                f"{numbers['peak_bytes'] / ours['peak_bytes']:>12.2f}"
            )
    floor = found["floor"]
    assert floor is not None
    ratio = ours["total"] / floor["total"]
    print(f"  {ratio:.2f} times the floor (asked: 2), peak {ours['peak_bytes'] / 1e6:.0f} MB (asked: 250)")
    return 0 if ratio <= 2 and ours["peak_bytes"] <= 250e6 else 1


if __name__ == "__main__":
    sys.exit(main())
