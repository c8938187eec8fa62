"""Which kernel of the baseline is the same one: by name and module, by shapes too where these are not enough.

Another precision or fusion brings kernels of other names. A matrix product or an attention kernel without a namesake is
set beside those of the baseline that do the same work in the same part of the model, as the waterfall groups it.
"""

from collections import Counter
from collections.abc import Sequence

from gptscope.profiling.metrics.waterfall import by_module
from gptscope.profiling.records import KernelRow, Profile

_COMPARABLE = frozenset({"GEMM", "attention"})
"""Categories with one job per part of the model, whatever their kernels are called."""


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
    _match_by_work(rows, baseline.kernels, steps, found)
    return found


def _match_by_work(
    rows: Sequence[KernelRow], baseline: Sequence[KernelRow], steps: int, found: list[float | None]
) -> None:
    """Give what the baseline spent under names that are gone to the longest row of the same work."""
    names = {(row.name, row.module) for row in rows}
    left: dict[tuple[str, str], float] = {}
    for row in baseline:
        if row.category in _COMPARABLE and (row.name, row.module) not in names:
            work = (row.category, by_module(row))
            left[work] = left.get(work, 0.0) + row.self_time_us / 1e3 / steps
    known = {(row.name, row.module) for row in baseline}
    for place in sorted(range(len(rows)), key=lambda place: -rows[place].self_time_us):
        row = rows[place]
        if found[place] is None and (row.name, row.module) not in known:
            found[place] = left.pop((row.category, by_module(row)), None)
