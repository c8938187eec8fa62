"""Operators by name, or by name and shapes: time on the host and on the device, their own and in total."""

from dataclasses import dataclass

import numpy as np

from gptscope.profiling.trace.analysis.linked import Linked
from gptscope.profiling.trace.categories import CATEGORIES
from gptscope.profiling.trace.grouping import group_by, heaviest
from gptscope.profiling.trace.kernels import shapes_text
from gptscope.profiling.trace.names import collapse_layers, short_name
from gptscope.profiling.trace.nesting import inside_itself
from gptscope.profiling.trace.table import some_rows


@dataclass(frozen=True, slots=True)
class OperatorSums:
    """One operator in all its calls."""

    name: str
    short: str
    category: str
    shapes: str
    """Input shapes when grouped by them, else empty."""
    calls: int
    host_self_ns: int
    host_total_ns: int
    """With the operators inside; a call inside a call of the same operator counts once."""
    device_self_ns: int
    """Of the kernels that it launched itself."""
    device_total_ns: int
    module: str
    """Where most of its time belongs, layers counted together."""


def operator_sums(linked: Linked, *, by_shape: bool = False) -> list[OperatorSums]:
    """Rows by falling own time, on the device where there is one; own times add up to all that operators took."""
    trace, nesting = linked.trace, linked.nesting
    rows = linked.operators[nesting.stands_for[linked.operators] == linked.operators]  # others count for their caller
    kept = (trace.name, trace.shapes) if by_shape else (trace.name,)
    nested = inside_itself(trace, nesting).astype(np.int8)
    # What is alike in everything is added up once; the table is sums of these few.
    alike = group_by(*(some_rows(c, rows) for c in (*kept, linked.operator_codes, nesting.module, nested)))
    one = rows[alike.first]
    groups, outermost = group_by(*(column[one] for column in kept)), nested[one] == 0
    host_self, host_total, device_self, device_total = (
        alike.sums(some_rows(column, rows))
        for column in (nesting.self_ns, trace.duration_ns, linked.device_self_ns, linked.device_total_ns)
    )
    weight = host_self + device_self
    code = heaviest(groups, linked.operator_codes[one], weight)
    module = heaviest(groups, nesting.module[one], weight)
    columns = (
        groups.least(alike.first),
        groups.sums(alike.sizes()),
        groups.sums(host_self),
        groups.sums(np.where(outermost, host_total, 0)),
        groups.sums(device_self),
        groups.sums(np.where(outermost, device_total, 0)),
    )
    table = []
    for number, (entry, calls, own, total, on_device, device_total) in enumerate(
        zip(*(c.tolist() for c in columns), strict=True)
    ):
        row = int(rows[entry])
        name = trace.names[trace.name[row]]
        table.append(
            OperatorSums(
                name=name,
                short=short_name(name),
                category=CATEGORIES[code[number]],
                shapes=shapes_text(linked.inputs.of(row), 1) if by_shape else "",
                calls=calls,
                host_self_ns=own,
                host_total_ns=total,
                device_self_ns=on_device,
                device_total_ns=device_total,
                module=collapse_layers(nesting.modules[module[number]]),
            )
        )
    if linked.has_device:
        return sorted(table, key=lambda r: (-r.device_self_ns, -r.host_self_ns, r.name, r.shapes))
    return sorted(table, key=lambda r: (-r.host_self_ns, r.name, r.shapes))
