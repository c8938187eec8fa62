"""Which kernel of the baseline is the same one: by name and module, by shapes too where these are not enough."""

from collections import Counter
from collections.abc import Sequence

from gptscope.profiling.records import KernelRow, Profile


def shown_name(row: KernelRow) -> str:
    """The name for people: the label, else the kernel's name without namespaces."""
    return row.label or row.name.removeprefix("aten::").removeprefix("at::native::").removeprefix("void ")


def row_key(row: KernelRow) -> str:
    """Identity of a kernel across panes."""
    return f"{row.name}|{row.module}|{row.input_shapes}"


def baseline_ms(rows: Sequence[KernelRow], baseline: Profile | None) -> list[float | None]:
    """Baseline self time per step of each row in ms; None where the baseline has no such kernel.

    No time of the baseline is given to two rows.
    """
    if baseline is None:
        return [None] * len(rows)
    steps = max(baseline.steps, 1)
    by_name: dict[tuple[str, ...], float] = {}
    by_shape: dict[tuple[str, ...], float] = {}
    for row in baseline.kernels:
        ms = row.self_time_us / 1e3 / steps
        by_name[row.name, row.module] = by_name.get((row.name, row.module), 0.0) + ms
        by_shape[row.name, row.module, row.input_shapes] = (
            by_shape.get((row.name, row.module, row.input_shapes), 0.0) + ms
        )
    uses = Counter((row.name, row.module) for row in rows)
    found: list[float | None] = []
    for row in rows:
        if uses[row.name, row.module] == 1:
            found.append(by_name.get((row.name, row.module)))
        else:
            found.append(by_shape.pop((row.name, row.module, row.input_shapes), None))
    return found
