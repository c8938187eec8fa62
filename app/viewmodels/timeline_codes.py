"""Which colour every event of a trace has: work by its category, containers, steps, waiting, unfinished."""

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.analysis.gaps import synchronising
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.categories import CATEGORIES, category_by_name
from gptscope.profiling.trace.nesting import MODULE_PREFIX, PYTHON_MODULE_PREFIX
from gptscope.profiling.trace.table import STEP_PREFIX

Codes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

CONTAINER, STEP, WAITING, UNFINISHED = range(len(CATEGORIES), len(CATEGORIES) + 4)
"""Codes after those of the categories: modules and operators that mostly call others, steps, waiting for a device, and
events whose end was not recorded."""
NAMES = (*CATEGORIES, "container", "step", "waiting", "unfinished")
"""Code -> what it is."""


def is_work(code: int) -> bool:
    """Whether a code is a category of work."""
    return code < len(CATEGORIES)


def event_codes(linked: Linked, depth_parent: npt.NDArray[np.bool_]) -> Codes:
    """Code of every row.

    Args:
        linked: The trace.
        depth_parent: Which rows have something inside on their own track; decides in traces of other programs, which
            have neither operators nor device work.
    """
    trace = linked.trace
    codes = np.full(len(trace), CONTAINER, np.uint8)
    if linked.has_device:
        codes[linked.work] = linked.work_codes
        codes[synchronising(linked) & trace.launches()] = WAITING
        codes[trace.in_categories("cuda_sync")] = WAITING
    elif linked.operators.size:
        working = working_operators(linked)
        codes[working] = linked.operator_codes[working]
    else:
        by_name = np.array([CATEGORIES.index(category_by_name(name)) for name in trace.names], np.uint8)
        if by_name.size:
            codes = np.where(depth_parent, codes, by_name[trace.name]).astype(np.uint8)
    codes[step_rows(linked)] = STEP
    codes[trace.unfinished] = UNFINISHED
    return codes


def working_operators(linked: Linked) -> npt.NDArray[np.int64]:
    """Rows of operators that call no other operator, or still take at least half of their time themselves."""
    rows, nesting = linked.operators, linked.nesting
    calls = np.zeros(len(linked.trace), bool)
    parent = nesting.parent[rows]
    calls[parent[parent >= 0]] = True
    return rows[~calls[rows] | (2 * nesting.self_ns[rows] >= linked.trace.duration_ns[rows])]


def step_rows(linked: Linked) -> Bools:
    """Which rows mark a step, as the host or a device saw it."""
    return linked.trace.named_like(STEP_PREFIX)


def module_rows(linked: Linked) -> Bools:
    """Which rows are calls of modules on the host."""
    trace = linked.trace
    ours = trace.named_like(MODULE_PREFIX) & ~trace.in_categories("gpu_user_annotation")
    return ours | (trace.named_like(PYTHON_MODULE_PREFIX) & trace.in_categories("python_function"))
