"""Collects what stands beside events with a duration: instants, counters, flows, memory events, names of threads."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gptscope.profiling.trace.events import BROKEN, Event, decode_args
from gptscope.profiling.trace.growing import Columns, Interner, Positions, hashable, numbers_from, track_numbers
from gptscope.profiling.trace.health import HealthReport
from gptscope.profiling.trace.points import Counters, Flows, Instants, MemoryEvents
from gptscope.profiling.trace.repair import args_one_by_one
from gptscope.profiling.trace.times import MISSING_NS, Digits, exact_ns

MEMORY_NAME = "[memory]"
_INT64 = range(-(2**63), 2**63)
_FLOW_PHASES = frozenset("stf")
_INSTANT_PHASES = frozenset("iIRn")
_MEMORY_FIELDS = {"memory_bytes": 0, "allocated": -1, "reserved": -1, "device_type": -1, "device_id": -1}


@dataclass
class Beside:
    """What was collected."""

    instants: Instants
    counters: Counters
    flows: Flows
    memory: MemoryEvents
    labels: dict[Any, str] = field(default_factory=dict)
    sort_indices: dict[Any, int] = field(default_factory=dict)
    process_labels: dict[Any, str] = field(default_factory=dict)


class BesideBuilder:
    """Takes the events of one phase of one piece after another."""

    def __init__(self, health: HealthReport, names: Interner, categories: Interner, tracks: Interner) -> None:
        self._health = health
        self._names, self._categories, self._tracks = names, categories, tracks
        self.series, self.flow_categories, self._text_ids = Interner(), Interner(), Interner()
        self.instants, self.counters, self.flows, self.memory = Columns(), Columns(), Columns(), Columns()
        self.labels: dict[Any, str] = {}
        self.sort_indices: dict[Any, int] = {}
        self.process_labels: dict[Any, str] = {}

    @property
    def nbytes(self) -> int:
        """What the columns take up."""
        return sum(c.nbytes for c in (self.instants, self.counters, self.flows, self.memory))

    def add(
        self,
        phase: str,
        rows: Sequence[Event],
        places: Positions | None,
        digits: Digits,
        first: int,
        text: bytes,
    ) -> None:
        """Take the events of one phase; `places` are their positions in the piece, `first` the piece's first number."""
        if phase == "M":
            self._add_metadata(rows)
            return
        if phase not in _FLOW_PHASES and phase not in _INSTANT_PHASES and phase != "C":
            self._health.add("ignored", f"events of a kind that has no place here ({phase or 'none'})", count=len(rows))
            return
        time = exact_ns([e.ts for e in rows], digits, places, "ts")
        place = numbers_from(first, len(rows), places)
        usable = time != MISSING_NS
        if not usable.all():
            self._health.add("put_aside", "events without a time", count=int((~usable).sum()))
            keep = np.flatnonzero(usable)
            rows, time, place = [rows[i] for i in keep.tolist()], time[keep], place[keep]
        if not rows:
            return
        if phase in _FLOW_PHASES:
            self._add_flows(phase, rows, time)
        elif phase == "C":
            self._add_counters(rows, time, (place.astype(np.int64) - first).tolist(), text)
        else:
            self._add_instants(rows, time, place)

    def _text_numbers(self, idents: list[Any]) -> list[int]:
        """Numbers for ids that are no numbers of 64 bits: below zero."""
        return [i if type(i) is int and i in _INT64 else -1 - self._text_ids[str(i)] for i in idents]

    def _track_numbers(self, rows: Sequence[Event]) -> npt.NDArray[np.int32]:
        return track_numbers(self._tracks, rows)

    def _add_metadata(self, rows: Sequence[Event]) -> None:
        for event in rows:
            args, what = event.args, event.name
            if args is None or what not in _META_NAMES:
                continue
            of_thread = what.startswith("thread")
            key = (hashable(event.pid), hashable(event.tid) if of_thread else None)
            if what.endswith("name") and args.name is not None:
                self.labels[key] = str(args.name)
            elif what.endswith("labels") and args.labels is not None:
                self.process_labels[key[0]] = str(args.labels)
            elif isinstance(args.sort_index, int):
                self.sort_indices[key] = args.sort_index

    def _add_flows(self, phase: str, rows: Sequence[Event], time: Any) -> None:
        idents = [e.id for e in rows]
        categories, flows = self.flow_categories, self.flows
        try:
            flows.append_narrow("ident", idents if set(map(type, idents)) == {int} else self._text_numbers(idents), 0)
        except OverflowError:
            flows.append_narrow("ident", self._text_numbers(idents), 0)
        named = [e.cat for e in rows]
        named = [e.cat or e.name for e in rows] if "" in named else named
        if named.count(named[0]) == len(rows):
            flows.append("category", np.full(len(rows), categories[named[0]], dtype=np.int32))
        else:
            flows.append("category", categories.numbers(named, len(rows)))
        flows.append("begins", np.full(len(rows), phase == "s", dtype=np.bool_))
        flows.append("track", self._track_numbers(rows))
        flows.append("time_ns", time)

    def _add_instants(self, rows: Sequence[Event], time: Any, place: Any) -> None:
        instants = self.instants
        instants.append("name", np.array([self._names[e.name] for e in rows], dtype=np.int32))
        instants.append("category", np.array([self._categories[e.cat] for e in rows], dtype=np.int32))
        instants.append("track", self._track_numbers(rows))
        instants.append("time_ns", time)
        instants.append("place", place)
        of_memory = [i for i, e in enumerate(rows) if e.name == MEMORY_NAME and e.args is not None]
        if of_memory:
            args = [rows[i].args for i in of_memory]
            for name, missing in _MEMORY_FIELDS.items():
                values = [getattr(a, name) for a in args]
                self.memory.append_narrow(name, [v if v in _INT64 else missing for v in values], missing)
            self.memory.append("time_ns", time[of_memory])
            self.memory.append("track", self._track_numbers([rows[i] for i in of_memory]))

    def _add_counters(self, rows: Sequence[Event], time: Any, places: list[int], text: bytes) -> None:
        """The values of counters stand in `args` under names of their own, so the piece is read again for them."""
        try:
            found = [event.args for event in decode_args(text)]
        except BROKEN:
            found = args_one_by_one(text)
        series: list[int] = []
        times: list[int] = []
        values: list[float] = []
        for event, moment, place in zip(rows, time.tolist(), places, strict=True):
            args = found[place] if place < len(found) else None
            for key, written in args.items() if isinstance(args, dict) else ():
                value = _finite(written)
                if value is None:
                    self._health.add("ignored", "a counter's value is no number")
                    continue
                counter = event.name if event.id is None else f"{event.name} {event.id}"
                series.append(self.series[hashable(event.pid), counter, key])
                times.append(moment)
                values.append(value)
        self.counters.append("serie", np.array(series, dtype=np.int32))
        self.counters.append("time_ns", np.array(times, dtype=np.int64))
        self.counters.append("value", np.array(values, dtype=np.float64))

    @property
    def has_text_ids(self) -> bool:
        """Some ids of arrows are texts, whose numbers mean nothing to another builder."""
        return bool(self._text_ids)

    def absorb(self, other: "BesideBuilder", meaning: Mapping[str, npt.NDArray[Any]], place: int) -> None:
        """Append what another one collected from the text that follows; see `Columns.absorb`."""
        self.instants.absorb(other.instants, meaning, place)
        self.memory.absorb(other.memory, meaning, place)
        self.counters.absorb(other.counters, {"serie": self.series.absorb(other.series)}, place)
        categories = {"category": self.flow_categories.absorb(other.flow_categories)}
        self.flows.absorb(other.flows, {**meaning, **categories}, place)
        self.labels |= other.labels
        self.sort_indices |= other.sort_indices
        self.process_labels |= other.process_labels

    def build(self) -> Beside:
        """Join everything."""
        instants, counters, flows, memory = self.instants, self.counters, self.flows, self.memory
        return Beside(
            instants=Instants(
                name=instants.take("name", type_=np.int32),
                category=instants.take("category", type_=np.int32),
                track=instants.take("track", type_=np.int32),
                time_ns=instants.take("time_ns", type_=np.int64),
                place=instants.take("place", type_=np.int64),
            ),
            counters=Counters(
                series=self.series.values_in_order,
                serie=counters.take("serie", type_=np.int32),
                time_ns=counters.take("time_ns", type_=np.int64),
                value=counters.take("value", type_=np.float64),
            ),
            flows=Flows(
                categories=self.flow_categories.values_in_order,
                category=flows.take("category", type_=np.int32),
                ident=flows.take("ident"),
                begins=flows.take("begins", type_=np.bool_),
                track=flows.take("track", type_=np.int32),
                time_ns=flows.take("time_ns", type_=np.int64),
            ),
            memory=MemoryEvents(
                time_ns=memory.take("time_ns", type_=np.int64),
                track=memory.take("track", type_=np.int32),
                bytes=memory.take("memory_bytes", type_=np.int64),
                allocated=memory.take("allocated", type_=np.int64),
                reserved=memory.take("reserved", type_=np.int64),
                device_type=memory.take("device_type", type_=np.int64),
                device_id=memory.take("device_id", type_=np.int64),
            ),
            labels=self.labels,
            sort_indices=self.sort_indices,
            process_labels=self.process_labels,
        )


def _finite(value: Any) -> float | None:
    """A counter's value, also when it stands in quotes; None for what is no number."""
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


_META_NAMES = frozenset({"process_name", "thread_name", "process_sort_index", "thread_sort_index", "process_labels"})
