"""Who launched what and for which operator, where several processes of one file (merged ranks) use the same ids.

Correlation and external ids are unique inside one process only, and device work does not name the process that launched
it. Which process uses which device is therefore found first: by ids that only one process uses, and by the order of the
file, in which the ranks of a merged trace stand alike on the host's side and on the device's.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.grouping import group_by
from gptscope.profiling.trace.table import Int64, Integers, Trace

_DENSE = 8
"""Ids up to so many times their count are looked up in a table instead of sorted."""
_CLEAR = 0.8
"""Share of the ids that must speak for the same process."""


@dataclass(frozen=True, slots=True)
class Launched:
    """For some rows of device work where they come from; -1 for not recorded."""

    launch: Int64
    """Row of the runtime call. One call may have launched many (a graph)."""
    process: npt.NDArray[np.integer]
    """Number of the host's process, as `Trace.process_of_track` counts; -1 also where nothing tells."""


def match_launches(trace: Trace, rows: Int64) -> Launched:
    """Find the runtime call with the same correlation id, in the process that uses the device."""
    calls = np.flatnonzero(trace.launches() & (trace.correlation != 0))
    process = _process(trace, calls)
    if not calls.size or (process == process[0]).all():
        launch = look_up(trace.correlation[calls], calls, trace.correlation[rows])
        return Launched(launch, np.where(launch >= 0, _process(trace, np.maximum(launch, 0)), -1))
    ids, of_call = np.unique(trace.correlation[calls], return_inverse=True)
    of_row = _positions(ids, trace.correlation[rows])
    devices = group_by(_process(trace, rows), trace.device[rows])
    home = _homes(_Ids(of_call, process, calls), _Ids(of_row, devices.of, rows), devices.count)
    chosen = home[devices.of]
    shared = np.flatnonzero((chosen < 0) & (of_row >= 0))
    chosen[shared] = _in_order(_Ids(of_call, process, calls), of_row[shared], rows[shared])
    count = int(process.max()) + 1
    known = (of_row >= 0) & (chosen >= 0)
    wanted = np.where(known, of_row * count + chosen + 1, 0)
    return Launched(look_up(of_call * count + process + 1, calls, wanted), chosen)


def match_operators(trace: Trace, wanted: Integers, process: npt.NDArray[np.integer]) -> Int64:
    """Rows of the operators with some external ids in some processes; -1 for none.

    Where the process is not known (-1) an id counts that only one process uses.
    """
    operators = np.flatnonzero(trace.operators() & (trace.external_id != 0))
    owner = _process(trace, operators)
    if not operators.size or (owner == owner[0]).all():
        return look_up(trace.external_id[operators], operators, wanted)
    ids, of_operator = np.unique(trace.external_id[operators], return_inverse=True)
    of_wanted = _positions(ids, wanted)
    least, most = np.full(ids.size, owner.max()), np.zeros(ids.size, dtype=owner.dtype)
    np.minimum.at(least, of_operator, owner)
    np.maximum.at(most, of_operator, owner)
    alone = np.where(least == most, least, -1)
    chosen = np.where((process < 0) & (of_wanted >= 0), alone[np.maximum(of_wanted, 0)], process)
    count = int(owner.max()) + 1
    known = (of_wanted >= 0) & (chosen >= 0) & (chosen < count)
    return look_up(of_operator * count + owner + 1, operators, np.where(known, of_wanted * count + chosen + 1, 0))


def look_up(keys: Integers, rows: Int64, wanted: Integers) -> Int64:
    """For every wanted key the row that has it (the last one of several), -1 for none and for key 0."""
    if not keys.size:
        return np.full(wanted.size, -1, dtype=np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < _DENSE * (keys.size + wanted.size):
        row_of = np.full(high - low + 1, -1, dtype=np.int64)
        row_of[np.subtract(keys, low, dtype=np.int64)] = rows
        place = np.subtract(wanted, low, dtype=np.int64)
        found: Int64 = row_of[np.clip(place, 0, high - low)]
        found[(place < 0) | (place > high - low) | (wanted == 0)] = -1
        return found
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    position = np.searchsorted(in_order, wanted, side="right") - 1
    found = (position >= 0) & (in_order[np.maximum(position, 0)] == wanted) & (wanted != 0)
    return np.where(found, rows[order][np.maximum(position, 0)], -1)


def _process(trace: Trace, rows: Int64) -> Int64:
    return trace.process_of_track[trace.track[rows]].astype(np.int64)


def _positions(ids: Integers, wanted: Integers) -> Int64:
    """Where each wanted id stands among sorted ids, -1 for nowhere and for id 0."""
    place = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    return np.where((ids[place] == wanted) & (wanted != 0), place, -1)


class _Ids:
    """Which processes (or devices) use which ids: each pair once, at its first row, in the order of the file."""

    def __init__(self, ident: Int64, user: Int64, rows: Int64) -> None:
        known = ident >= 0
        ident, user, rows = ident[known], user[known], rows[known]
        pairs = group_by(ident, user)
        first = pairs.least(rows)
        order = np.lexsort((first, ident[pairs.first]))
        self.ident, self.user = ident[pairs.first][order], user[pairs.first][order]

    def counts(self, size: int) -> Int64:
        """How many use each id."""
        return np.bincount(self.ident, minlength=size)


def _homes(calls: _Ids, work: _Ids, devices: int) -> Int64:
    """For every device the process that most of its ids speak for; -1 where none does clearly."""
    size = int(calls.ident.max()) + 1
    of_calls, of_work = calls.counts(size), work.counts(size)
    alike = of_calls == of_work
    # As many processes as devices use an id: the first goes with the first, as ranks were written one after another.
    single = (of_calls == 1) & ~alike
    only = np.full(size, -1, dtype=np.int64)
    only[calls.ident] = calls.user
    here = single[work.ident]
    device = np.concatenate((work.user[alike[work.ident]], work.user[here]))
    process = np.concatenate((calls.user[alike[calls.ident]], only[work.ident[here]]))
    pairs = group_by(device, process)
    votes, voted = pairs.sizes(), device[pairs.first]
    order = np.lexsort((votes, voted))
    best = order[np.append(voted[order][1:] != voted[order][:-1], [True])] if order.size else order
    home = np.full(devices, -1, dtype=np.int64)
    clear = votes[best] >= _CLEAR * np.bincount(device, minlength=devices)[voted[best]]
    home[voted[best][clear]] = process[pairs.first[best]][clear]
    return home


def _in_order(calls: _Ids, ident: Int64, rows: Int64) -> Int64:
    """Processes of work on devices that several processes use: equal shares of an id's rows, in the file's order."""
    size = int(calls.ident.max()) + 1
    users = calls.counts(size)
    begin = np.cumsum(users) - users
    order = np.lexsort((rows, ident))
    count = np.bincount(ident, minlength=size)
    rank = np.arange(order.size) - (np.cumsum(count) - count)[ident[order]]
    share = rank * users[ident[order]] // np.maximum(count[ident[order]], 1)
    chosen = np.full(ident.size, -1, dtype=np.int64)
    chosen[order] = calls.user[begin[ident[order]] + share]
    return chosen
