"""Everything about one chosen kernel, as name and value lines."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import category_title, per_unit
from gptscope.app.viewmodels.kernel_match import row_key, shown_name
from gptscope.profiling.metrics.mfu_mbu import memory_peak_gbps
from gptscope.profiling.metrics.roofline import kernel_gbps, kernel_tflops
from gptscope.profiling.records import EvidenceReport, KernelRow, Peaks, Profile

Lines = tuple[tuple[str, str], ...]


def find(profile: Profile | None, key: str) -> KernelRow | None:
    """The kernel with this key."""
    if profile is None or not key:
        return None
    return next((row for row in profile.kernels if row_key(row) == key), None)


def kernel_lines(row: KernelRow, profile: Profile, peaks: Peaks | None, kind: str) -> Lines:
    """What is known of one kernel; what is not says n/a with its reason."""
    unit, steps = per_unit(kind), max(profile.steps, 1)
    no_shapes = "shapes were not recorded"
    no_rate = "it moves no bytes" if row.bytes == 0 else no_shapes
    gbps, tflops = kernel_gbps(row), kernel_tflops(row)
    peak, why = memory_peak_gbps(peaks)
    share_of_peak = gbps / peak if gbps is not None and peak else None
    intensity = row.flops / row.bytes if row.flops is not None and row.bytes else None
    return (
        ("Kernel", shown_name(row)),
        ("Operator", row.name),
        ("Category", category_title(row.category)),
        ("Module", row.module or "n/a: outside any module"),
        ("Shapes", row.input_shapes or f"n/a: {no_shapes}"),
        ("Types", ", ".join(row.dtypes) or f"n/a: {no_shapes}"),
        (f"Calls per {unit}", fmt.number(row.calls / steps)),
        (f"Self time per {unit}", fmt.duration(row.self_time_us * 1e-6 / steps)),
        (f"Total time per {unit}", fmt.duration(row.total_time_us * 1e-6 / steps)),
        ("Mean per call", fmt.duration(row.self_time_us * 1e-6 / max(row.calls, 1))),
        (
            "Bytes per call, modelled",
            fmt.quantity(row.bytes / max(row.calls, 1) if row.bytes is not None else None, "bytes", no_shapes),
        ),
        ("Bandwidth, modelled", f"{fmt.number(gbps)} GB/s" if gbps is not None else fmt.unknown(no_rate)),
        ("Of measured peak", fmt.of_peak(share_of_peak, why or no_rate)),
        (
            "Arithmetic",
            f"{fmt.number(1e3 * tflops)} GFLOP/s" if tflops is not None else fmt.unknown("no FLOPs modelled"),
        ),
        (
            "Intensity",
            f"{fmt.number(intensity)} FLOP/byte" if intensity is not None else fmt.unknown("no FLOPs modelled"),
        ),
    )


def evidence_lines(report: EvidenceReport | None) -> tuple[tuple[str, bool | None, str], ...]:
    """Lever, in effect, sentence."""
    if report is None:
        return ()
    return tuple((item.lever, item.in_effect, item.sentence) for item in report.items)
