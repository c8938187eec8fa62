"""Where a token's time goes: categories stacked, the longest kernels below, the baseline as a tick."""

from dataclasses import dataclass

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.kernel_match import baseline_ms, shown_name
from gptscope.profiling.records import KernelRow, Profile

CATEGORY_TITLES = {
    "GEMM": "GEMM",
    "attention": "attention",
    "norm": "norm",
    "elementwise": "elementwise",
    "reduction": "reduction",
    "copy": "copy",
    "communication": "communication",
    "optimizer": "optimizer",
    "quantize": "cast, quantize",
    "other": "other",
}
WAITING = "Kernel times appear here after the profiled part of a run, which follows the measured one."
NOT_PROFILED = "This run was not profiled."
_PER = {"decode": "token", "generate": "token", "prefill": "prompt", "train": "step"}


@dataclass(frozen=True)
class Slice:
    """One category's part of the stacked bar, milliseconds per step."""

    category: str
    title: str
    ms: float


@dataclass(frozen=True)
class Row:
    """One kernel, milliseconds per step; `base_ms` None: not in the baseline (or no baseline)."""

    name: str
    category: str
    ms: float
    base_ms: float | None


@dataclass(frozen=True)
class KernelTimes:
    """What the panel draws."""

    total_ms: float
    slices: tuple[Slice, ...]
    base_total_ms: float | None
    base_slices: tuple[Slice, ...]
    rows: tuple[Row, ...]
    more: int
    """Kernels that are not among the rows."""
    more_ms: float
    summary: str


def per_unit(kind: str) -> str:
    """`token`, `prompt` or `step`."""
    return _PER.get(kind, "step")


def category_title(category: str) -> str:
    """The category as people read it."""
    return CATEGORY_TITLES.get(category, category)


def build(profile: Profile | None, baseline: Profile | None, *, rows: int = 9) -> KernelTimes | None:
    """The longest kernels of a profile beside the same kernels of the baseline; None without a profile."""
    if profile is None:
        return None
    longest = sorted(_merged(profile, baseline), key=lambda row: -row.ms)
    shown = longest[:rows]
    slices, base_slices = _slices(profile), _slices(baseline) if baseline is not None else ()
    rest = longest[rows:]
    top = ", ".join(f"{row.name} {fmt.number(row.ms)} ms" for row in shown[:3])
    total = sum(s.ms for s in slices)
    return KernelTimes(
        total_ms=total,
        slices=slices,
        base_total_ms=sum(s.ms for s in base_slices) if base_slices else None,
        base_slices=base_slices,
        rows=tuple(shown),
        more=len(rest),
        more_ms=sum(row.ms for row in rest),
        summary=f"Kernel time {fmt.number(total)} ms; longest: {top}.",
    )


def _merged(profile: Profile, baseline: Profile | None) -> list[Row]:
    """Rows that people would call the same (other shapes or layers) together."""
    table: dict[str, Row] = {}
    for kernel, base_ms in zip(profile.kernels, baseline_ms(profile.kernels, baseline), strict=True):
        name, ms = shown_name(kernel), _per_step_ms(kernel, profile)
        earlier = table.get(name, Row(name, kernel.category, 0.0, None))
        known = [value for value in (earlier.base_ms, base_ms) if value is not None]
        table[name] = Row(name, kernel.category, earlier.ms + ms, sum(known) if known else None)
    return list(table.values())


def _slices(profile: Profile) -> tuple[Slice, ...]:
    totals: dict[str, float] = {}
    for kernel in profile.kernels:
        totals[kernel.category] = totals.get(kernel.category, 0.0) + _per_step_ms(kernel, profile)
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    return tuple(Slice(category, category_title(category), ms) for category, ms in ordered if ms > 0)


def _per_step_ms(kernel: KernelRow, profile: Profile) -> float:
    return kernel.self_time_us / 1e3 / max(profile.steps, 1)
