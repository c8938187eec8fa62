"""Every table of a trace by its name, for exports and the command line."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from gptscope.profiling.trace.analysis.communication import collective_sums
from gptscope.profiling.trace.analysis.copies import copy_sums
from gptscope.profiling.trace.analysis.gaps import gap_sums
from gptscope.profiling.trace.analysis.kernels import category_sums, kernel_sums
from gptscope.profiling.trace.analysis.launches import graph_sums, launch_calls
from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.analysis.memory import device_memory, operator_memory
from gptscope.profiling.trace.analysis.modules import module_sums
from gptscope.profiling.trace.analysis.operators import operator_sums
from gptscope.profiling.trace.analysis.roofline import roofline_points
from gptscope.profiling.trace.analysis.steps import step_times
from gptscope.profiling.trace.analysis.utilisation import device_use

TABLES: dict[str, Callable[[Linked], Sequence[Any]]] = {
    "kernels": kernel_sums,
    "categories": category_sums,
    "operators": operator_sums,
    "operators-by-shape": lambda linked: operator_sums(linked, by_shape=True),
    "modules": module_sums,
    "layers": lambda linked: module_sums(linked, collapse=False),
    "steps": step_times,
    "devices": device_use,
    "gaps": gap_sums,
    "launches": launch_calls,
    "graphs": graph_sums,
    "copies": copy_sums,
    "collectives": collective_sums,
    "memory": device_memory,
    "operator-memory": operator_memory,
    "roofline": lambda linked: roofline_points(kernel_sums(linked)),
}


def table_columns(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Rows as columns: fields in order, then what is computed from them; a field of parts becomes one column each."""
    columns: dict[str, list[Any]] = {}
    if not rows:
        return columns
    kind = type(rows[0])
    names = [f.name for f in fields(kind)]
    names += [name for name, value in vars(kind).items() if isinstance(value, property)]
    for name in names:
        values = [getattr(row, name) for row in rows]
        if isinstance(values[0], dict):
            unit = "_ns" if name.endswith("_ns") else ""
            for part in values[0]:
                columns[f"{part.replace(' ', '_')}{unit}"] = [value[part] for value in values]
        else:
            columns[name] = values
    return columns
