"""Everything about one chosen operator, as name and value lines."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import category_title, per_unit
from gptscope.app.viewmodels.inspect_kernel import Lines
from gptscope.app.viewmodels.operator_table import operator_key, operator_rows
from gptscope.profiling.records import OperatorRow, Profile

_MOST_KERNELS = 3


def find(profile: Profile | None, key: str) -> OperatorRow | None:
    """The operator with this key."""
    if profile is None or not key:
        return None
    return next((row for row in operator_rows(profile) if operator_key(row) == key), None)


def operator_lines(row: OperatorRow, profile: Profile, kind: str) -> Lines:
    """What is known of one operator."""
    unit, steps = per_unit(kind), max(profile.steps, 1)
    module = row.module or "outside any module"
    lines = [
        ("Operator", row.name),
        ("Category", category_title(row.category)),
        ("Module", module if row.modules <= 1 else f"{module} and {row.modules - 1} more"),
        ("Shapes", row.input_shapes or fmt.unknown("shapes were not recorded")),
        (f"Calls per {unit}", fmt.number(row.calls / steps)),
        (f"Self time per {unit}", fmt.duration(row.self_time_us * 1e-6 / steps)),
        (f"Total time per {unit}", fmt.duration(row.total_time_us * 1e-6 / steps)),
        ("Mean per call", fmt.duration(row.self_time_us * 1e-6 / max(row.calls, 1))),
    ]
    if row.device_total_time_us is not None:
        own = (row.device_self_time_us or 0.0) * 1e-6 / steps
        lines += [
            (f"GPU time per {unit}, own kernels", fmt.duration(own)),
            (f"GPU time per {unit}, all inside", fmt.duration(row.device_total_time_us * 1e-6 / steps)),
        ]
        named = ", ".join(row.kernels[:_MOST_KERNELS])
        more = len(row.kernels) - _MOST_KERNELS
        lines.append(("Kernels", (f"{named} and {more} more" if more > 0 else named) or "none of its own"))
    return tuple(lines)
