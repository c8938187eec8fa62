"""Where the time between two runs went: milliseconds won and lost per category or module, adding up exactly.

Per step, in whole nanoseconds, for each run

    measured median step = kernels of the profile + launch gaps + unattributed

Kernel times come from the profiled steps as recorded. The profiler's own cost (profiled wall time - measured median) is
left out: it is taken from the time between kernels first, where it mostly falls. What does not add up (kernels that the
profiler stretched, threads that overlapped) is in `unattributed`, which may be negative. It is never spread over rows.
"""

import re
from collections.abc import Callable, Iterable

import msgspec

from gptscope.profiling.records import KernelRow, Profile
from gptscope.profiling.trace.names import of_draft

GAPS, UNATTRIBUTED = "launch gaps", "unattributed"
_LAYER = re.compile(r"^(?:\w+\.)*?(?:blocks|layers|h)\.(?:\*|\d+)\.?")
_GROUPS: tuple[tuple[str, str], ...] = (
    (r"embed|position", "embedding"),
    (r"attn\.qkv(\..*)?", "qkv"),
    (r"attn\.core(\..*)?", "attention, KV"),
    (r"attn\.out(\..*)?", "attention out"),
    (r"attn\.(q_norm|k_norm)", "norms, residual"),
    (r"mlp\.(gate|up|gate_up)(\..*)?", "mlp gate, up"),
    (r"mlp\.down(\..*)?", "mlp down"),
    (r"mlp", "mlp activation"),
    (r"(\w*_)?norm", "norms, residual"),
    (r"lm_head(\..*)?", "lm_head"),
)
"""Module path without its layer -> the group that stays the same when a fusion renames or merges modules."""
_ATTENTION: dict[str, str] = {"elementwise": "rope", "GEMM": "qkv"}
"""Work that lies directly in the attention module, by category; the rest is "attention, KV"."""
_BLOCK, _OUTSIDE, _DRAFT = "norms, residual", "outside the model", "draft model"


class WaterfallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One group in both runs; whole nanoseconds per step."""

    name: str
    baseline_ns: int
    candidate_ns: int

    @property
    def change_ns(self) -> int:
        """Candidate minus baseline; negative is time won."""
        return self.candidate_ns - self.baseline_ns


class Waterfall(msgspec.Struct, frozen=True, kw_only=True):
    """Groups by falling baseline time, then launch gaps and unattributed; both columns add up to the measured steps."""

    rows: tuple[WaterfallRow, ...]
    baseline_ns: int
    """Measured median step of the baseline, without profiler."""
    candidate_ns: int
    baseline_overhead_ns: int
    """What the profiler added to a step; left out of the rows."""
    candidate_overhead_ns: int


def by_category(row: KernelRow) -> str:
    """Group kernels by kind of work."""
    return row.category


def by_module(row: KernelRow) -> str:
    """Group kernels by part of the model, the same for fused and unfused modules."""
    if row.category == "optimizer":
        return "optimizer"
    if not row.module:
        return _OUTSIDE
    if of_draft(row.module):
        return _DRAFT
    inner = _LAYER.sub("", row.module)
    if not inner:
        return _BLOCK
    if inner == "attn":
        return _ATTENTION.get(row.category, "attention, KV")
    for pattern, group in _GROUPS:
        if re.fullmatch(pattern, inner):
            return group
    return inner


def waterfall(
    baseline: Profile,
    candidate: Profile,
    *,
    baseline_step_ns: int,
    candidate_step_ns: int,
    group: Callable[[KernelRow], str] = by_category,
) -> Waterfall:
    """Compare two profiles.

    Args:
        baseline: Kernel table of the baseline, with at least one profiled step.
        candidate: Kernel table of the candidate, likewise.
        baseline_step_ns: Measured median step without profiler.
        candidate_step_ns: The candidate's.
        group: What a kernel is counted under.

    Returns:
        Rows whose columns add up to the two measured steps to the nanosecond.
    """
    sides = [_side(baseline, baseline_step_ns, group), _side(candidate, candidate_step_ns, group)]
    names = sorted(set(sides[0].groups) | set(sides[1].groups), key=lambda n: -sides[0].groups.get(n, 0))
    rows = [
        WaterfallRow(name=name, baseline_ns=sides[0].groups.get(name, 0), candidate_ns=sides[1].groups.get(name, 0))
        for name in names
    ]
    rows.append(WaterfallRow(name=GAPS, baseline_ns=sides[0].gaps, candidate_ns=sides[1].gaps))
    rows.append(WaterfallRow(name=UNATTRIBUTED, baseline_ns=sides[0].rest, candidate_ns=sides[1].rest))
    return Waterfall(
        rows=tuple(rows),
        baseline_ns=baseline_step_ns,
        candidate_ns=candidate_step_ns,
        baseline_overhead_ns=sides[0].overhead,
        candidate_overhead_ns=sides[1].overhead,
    )


class _Side(msgspec.Struct, frozen=True, kw_only=True):
    """One run's step, taken apart."""

    groups: dict[str, int]
    gaps: int
    rest: int
    overhead: int


def _side(profile: Profile, step_ns: int, group: Callable[[KernelRow], str]) -> _Side:
    steps = max(profile.steps, 1)
    groups = _sums(profile.kernels, steps, group)
    wall_ns, busy_ns = round(profile.wall_us * 1e3 / steps), round(profile.busy_us * 1e3 / steps)
    overhead = wall_ns - step_ns
    gaps = max(0, wall_ns - busy_ns - max(0, overhead))
    return _Side(groups=groups, gaps=gaps, rest=step_ns - sum(groups.values()) - gaps, overhead=overhead)


def _sums(kernels: Iterable[KernelRow], steps: int, group: Callable[[KernelRow], str]) -> dict[str, int]:
    sums: dict[str, float] = {}
    for row in kernels:
        sums[group(row)] = sums.get(group(row), 0.0) + row.self_time_us
    return {name: round(us * 1e3 / steps) for name, us in sums.items()}
