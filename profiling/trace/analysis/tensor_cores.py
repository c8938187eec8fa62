"""Whether matrix products ran on tensor cores (AMD: matrix cores), told by the kernels' names."""

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.categories import CATEGORIES

_ON_TENSOR_CORES = re.compile(
    r"tensorop|tensor_?op|[hi]mma|wgmma|_mma_|s16816|s1688|h16816|i16832|h884|s884|i8816|_xmma_|nvjet|f16f16_f16f32"
    r"|bf16bf16|tf32f32|flash_fwd|flash_bwd|fmha|_tc_|cutlass_[789]\d_(?:wmma|tensorop)|_MI\d+x\d+|mfma",
    re.IGNORECASE,
)
_NOT_ON_THEM = re.compile(r"sgemm|dgemm|simt|gemv|gemmsn|scudnn|dot_kernel|_SS_|ffma", re.IGNORECASE)
_ELIGIBLE = tuple(CATEGORIES.index(c) for c in ("GEMM", "attention"))


@lru_cache(maxsize=65536)
def uses_tensor_cores(name: str) -> bool | None:
    """Whether a kernel's name says that it runs on tensor cores; None when it says nothing."""
    if _ON_TENSOR_CORES.search(name):
        return True
    return False if _NOT_ON_THEM.search(name) else None


@dataclass(frozen=True, slots=True)
class TensorCoreUse:
    """Time of matrix products and attention by what their kernels' names say."""

    eligible_ns: int
    used_ns: int
    unused_ns: int
    unknown_ns: int

    @property
    def used_share(self) -> float | None:
        """Of the time that can be told; None when nothing can."""
        known = self.used_ns + self.unused_ns
        return self.used_ns / known if known else None


def tensor_core_use(linked: Linked) -> TensorCoreUse:
    """Sum up matrix products and attention on devices."""
    uses = tensor_cores_by_category(linked).values()
    used, unused = sum(use.used_ns for use in uses), sum(use.unused_ns for use in uses)
    unknown = sum(use.unknown_ns for use in uses)
    return TensorCoreUse(used + unused + unknown, used, unused, unknown)


def tensor_cores_by_category(linked: Linked) -> dict[str, TensorCoreUse]:
    """The same for matrix products and for attention; only those that the trace has."""
    trace, found = linked.trace, {}
    for code in _ELIGIBLE:
        rows = linked.work[linked.work_codes == code]
        per_name = np.zeros(len(trace.names), dtype=np.int64)
        np.add.at(per_name, trace.name[rows], trace.duration_ns[rows])
        sums: dict[bool | None, int] = {True: 0, False: 0, None: 0}
        for number in np.flatnonzero(per_name).tolist():
            sums[uses_tensor_cores(trace.names[number])] += int(per_name[number])
        if rows.size:
            found[CATEGORIES[code]] = TensorCoreUse(sum(sums.values()), sums[True], sums[False], sums[None])
    return found
