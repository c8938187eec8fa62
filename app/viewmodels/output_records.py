"""What an experiment's records say about outputs: quality, layer maps, losses, scales of narrow formats."""

from dataclasses import dataclass, field

import msgspec

from gptscope.profiling.quality.loss_curves import LossComparison, compare_losses, compare_seeds, with_measured
from gptscope.profiling.quality.loss_seeds import SeedComparison
from gptscope.profiling.records import (
    LayerErrors,
    Quality,
    Record,
    RunStarted,
    ScaleHistory,
    ScaleSeries,
    SeedLosses,
    StepSamples,
)


@dataclass
class ScaleCourse:
    """One tensor of one layer over the whole run, put together from the pieces that were sent."""

    layer: str
    tensor: str
    largest: float
    """The number format's largest value."""
    steps: list[int] = field(default_factory=list)
    amax: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)

    def add(self, piece: ScaleSeries) -> None:
        """Take the next piece."""
        self.largest = piece.largest
        self.steps += piece.steps
        self.amax += piece.amax
        self.scale += piece.scale


@dataclass
class OutputRecords:
    """Fed with every record of an experiment; each table is by run."""

    qualities: dict[str, Quality] = field(default_factory=dict)
    maps: dict[str, LayerErrors] = field(default_factory=dict)
    losses: dict[str, list[float]] = field(default_factory=dict)
    """Of every training step in the order in which they ran; warm-up and profiled steps train, too."""
    seeds: dict[str, int] = field(default_factory=dict)
    """Of the measured trainings."""
    seed_losses: dict[str, dict[int, tuple[float, ...]]] = field(default_factory=dict)
    """Of further trainings, by their seeds."""
    scales: dict[str, dict[tuple[str, str], ScaleCourse]] = field(default_factory=dict)
    revision: int = 0

    def apply(self, record: Record) -> None:
        """Take one record."""
        match record:
            case Quality():
                self.qualities[record.run_id] = record
            case LayerErrors():
                self.maps[record.run_id] = record
            case ScaleHistory():
                known = self.scales.setdefault(record.run_id, {})
                for piece in record.series:
                    key = (piece.layer, piece.tensor)
                    known.setdefault(key, ScaleCourse(piece.layer, piece.tensor, piece.largest)).add(piece)
            case StepSamples(kind="train") if record.loss:
                self.losses.setdefault(record.run_id, []).extend(record.loss)
            case SeedLosses():
                self.seed_losses.setdefault(record.run_id, {})[record.seed] = record.loss
            case RunStarted():
                self.seeds[record.run_id] = record.seed
                return
            case _:
                return
        self.revision += 1

    def loss_beside(self, run_id: str, baseline_id: str) -> LossComparison | None:
        """How training ended beside the baseline's end; None unless both trained."""
        ours, theirs = self.losses.get(run_id, []), self.losses.get(baseline_id, [])
        found = compare_losses(ours, theirs, run_id=run_id, baseline_run_id=baseline_id)
        if found is None:
            return None
        return msgspec.structs.replace(found, over_seeds=self.over_seeds(run_id, baseline_id))

    def over_seeds(self, run_id: str, baseline_id: str) -> SeedComparison | None:
        """The difference of the final losses over seeds; None when there is one seed only."""
        if run_id not in self.seed_losses or baseline_id not in self.seed_losses:
            return None
        sides = [
            with_measured(self.seeds.get(one), self.losses.get(one, []), self.seed_losses[one])
            for one in (run_id, baseline_id)
        ]
        return compare_seeds(*sides)

    @property
    def any(self) -> bool:
        """Whether there is something for the Quality view to show."""
        return bool(self.qualities or self.maps or self.scales or len(self.losses) > 1)
