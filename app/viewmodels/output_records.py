"""What an experiment's records say about outputs: quality, layer maps, losses, scales of narrow formats."""

from dataclasses import dataclass, field

from gptscope.profiling.records import LayerErrors, Quality, Record, ScaleHistory, ScaleSeries, StepSamples


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
            case _:
                return
        self.revision += 1

    @property
    def any(self) -> bool:
        """Whether there is something for the Quality view to show."""
        return bool(self.qualities or self.maps or self.scales or len(self.losses) > 1)
