"""The operator table of a profile beside the baseline's, and which operator belongs to which kernel."""

from collections.abc import Sequence

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.charts.kernel_times import per_unit
from gptscope.app.viewmodels.columns import bar, categories, floats, numbers, text
from gptscope.app.viewmodels.kernel_match import row_key
from gptscope.app.viewmodels.tables import Column, Table, calls_text
from gptscope.profiling.records import KernelRow, OperatorRow, Profile

NO_PROFILE = "Operators appear here after a profiled run: press Run, or reopen one from History."


def operator_rows(profile: Profile) -> Sequence[OperatorRow]:
    """The profile's operators; of an old CPU profile without them, its kernels, which there are operators."""
    if profile.operators or profile.device != "cpu":
        return profile.operators
    sums: dict[tuple[str, str], OperatorRow] = {}
    for row in profile.kernels:
        key = (row.name, row.input_shapes)
        before = sums.get(key)
        sums[key] = OperatorRow(
            name=row.name,
            calls=row.calls + (before.calls if before else 0),
            self_time_us=row.self_time_us + (before.self_time_us if before else 0.0),
            total_time_us=row.total_time_us + (before.total_time_us if before else 0.0),
            input_shapes=row.input_shapes,
            category=row.category,
            module=before.module if before else row.module,
            modules=before.modules + 1 if before else 1,
        )
    return tuple(sorted(sums.values(), key=lambda row: -row.self_time_us))


def operator_key(row: OperatorRow) -> str:
    """Identity of an operator across panes."""
    return f"{row.name}|{row.input_shapes}"


def operator_of(profile: Profile, kernel: KernelRow) -> str:
    """Key of the operator that a kernel belongs to; empty when the profile does not tell."""
    rows = operator_rows(profile)
    if profile.device == "cpu":
        named = [row for row in rows if row.name == kernel.name]
        exact = [row for row in named if row.input_shapes == kernel.input_shapes]
        return operator_key((exact or named)[0]) if named else ""
    launched = [row for row in rows if kernel.name in row.kernels]
    at_home = [row for row in launched if row.module == kernel.module]
    found = max(at_home or launched, key=lambda row: row.device_self_time_us or 0.0, default=None)
    return operator_key(found) if found is not None else ""


def kernel_of(profile: Profile, operator: str) -> str:
    """Key of the longest kernel of an operator; empty when it launches none itself."""
    row = next((row for row in operator_rows(profile) if operator_key(row) == operator), None)
    if row is None:
        return ""
    if profile.device == "cpu":
        named = [kernel for kernel in profile.kernels if kernel.name == row.name]
        close = [kernel for kernel in named if kernel.input_shapes == row.input_shapes] or named
    else:
        named = [kernel for kernel in profile.kernels if kernel.name in row.kernels]
        close = [kernel for kernel in named if kernel.module == row.module] or named
    longest = max(close, key=lambda kernel: kernel.self_time_us, default=None)
    return row_key(longest) if longest is not None else ""


def operator_table(profile: Profile | None, baseline: Profile | None, kind: str) -> Table:
    """Self and total time per step on the CPU's threads; with a device also the time of the kernels launched."""
    unit = per_unit(kind)
    if profile is None:
        return Table(columns=_headings(unit), rows=0, empty=NO_PROFILE)
    rows = operator_rows(profile)
    if not rows and profile.device != "cpu":
        return Table(columns=_headings(unit), rows=0, empty="This run was recorded before operators were kept apart.")
    steps = max(profile.steps, 1)
    calls = floats([row.calls / steps for row in rows])
    self_ms = floats([row.self_time_us / 1e3 / steps for row in rows])
    total_ms = [row.total_time_us / 1e3 / steps for row in rows]
    mean_us = [row.self_time_us / max(row.calls, 1) for row in rows]
    share = self_ms / self_ms.sum() if self_ms.sum() > 0 else self_ms
    without, within = "Without the operators inside it", "With everything inside it"
    columns = (
        text("Operator", [row.name.removeprefix("aten::") for row in rows], width=200, stretch=True),
        categories([row.category for row in rows], width=92),
        numbers("Calls", calls, shown=calls_text, width=56, tip=f"Calls per {unit}", adds=True),
        numbers("Self ms", self_ms, strong=True, tip=f"{without}, per {unit}, on the CPU", adds=True),
        numbers("Total ms", total_ms, tip=f"{within}, per {unit}, on the CPU"),
        bar("Share of self", share, adds=True),
        numbers("Mean µs", mean_us, width=70, tip="Self time per call"),
        *(_device_columns(rows, steps, unit) if profile.device != "cpu" else ()),
        *(_baseline_columns(rows, baseline) if baseline is not None else ()),
        text("Module", [_module_text(row) for row in rows], width=170),
        text("Shapes", [row.input_shapes for row in rows], width=230, missing=""),
    )
    footer = [""] * len(columns)
    footer[0] = f"{fmt.count(len(rows))} operators, {profile.steps} profiled {unit}s"
    footer[2], footer[3], footer[5] = calls_text(float(calls.sum())), fmt.number(float(self_ms.sum())), "100 %"
    return Table(
        columns=columns,
        rows=len(rows),
        categories=[row.category for row in rows],
        keys=[operator_key(row) for row in rows],
        searched=[f"{row.name} {row.category} {row.module} {row.input_shapes}".casefold() for row in rows],
        footer=tuple(footer),
        default_sort=3,
        empty=NO_PROFILE,
    )


def _device_columns(rows: Sequence[OperatorRow], steps: int, unit: str) -> tuple[Column, ...]:
    own = [_ms(row.device_self_time_us, steps) for row in rows]
    inside = [_ms(row.device_total_time_us, steps) for row in rows]
    return (
        numbers("GPU self ms", own, width=88, tip=f"Kernels that it launched itself, per {unit}"),
        numbers("GPU total ms", inside, width=92, tip=f"Kernels launched inside it, per {unit}"),
    )


def _baseline_columns(rows: Sequence[OperatorRow], baseline: Profile) -> tuple[Column, ...]:
    base_ms = _baseline_ms(rows, baseline)
    return (numbers("Base self ms", base_ms, width=92, tip="Self time of the same operator in the baseline"),)


def _baseline_ms(rows: Sequence[OperatorRow], baseline: Profile) -> list[float | None]:
    """Self time of the same operator on the same shapes, else, where its name is there once, by name."""
    steps = max(baseline.steps, 1)
    theirs = operator_rows(baseline)
    exact = {operator_key(row): row.self_time_us / 1e3 / steps for row in theirs}
    by_name: dict[str, float] = {}
    for row in theirs:
        by_name[row.name] = by_name.get(row.name, 0.0) + row.self_time_us / 1e3 / steps
    uses: dict[str, int] = {}
    for row in rows:
        uses[row.name] = uses.get(row.name, 0) + 1
    return [by_name.get(row.name) if uses[row.name] == 1 else exact.get(operator_key(row)) for row in rows]


def _module_text(row: OperatorRow) -> str:
    where = row.module or "outside any module"
    return where if row.modules <= 1 else f"{where} and {row.modules - 1} more"


def _headings(unit: str) -> tuple[Column, ...]:
    titles = ("Operator", "Category", "Calls", "Self ms", "Total ms", f"Share of {unit}", "Shapes")
    return tuple(Column(title=title, values=(), text=lambda _i: "", width=120) for title in titles)


def _ms(time_us: float | None, steps: int) -> float | None:
    return None if time_us is None else time_us / 1e3 / steps
