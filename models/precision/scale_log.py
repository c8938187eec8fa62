"""How large the tensors of each scaled layer were, and what they were scaled by: step by step, in bounded memory."""

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["input", "weight", "grad"]
ROLES: tuple[Role, ...] = ("input", "weight", "grad")
MOST_POINTS = 256
"""Steps kept per series; past it every second one is dropped, again and again."""


@dataclass(slots=True)
class ScaleSeries:
    """One tensor of one layer."""

    layer: str
    role: Role
    largest: float
    """The format's largest value: amax · scale above it means that values saturated."""
    steps: list[int] = field(default_factory=list)
    amax: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    """What values were multiplied by before they were rounded; the smallest where rows or blocks have their own."""

    def thin(self, stride: int) -> None:
        """Keep the steps that `stride` divides."""
        kept = [index for index, step in enumerate(self.steps) if step % stride == 0]
        self.steps = [self.steps[index] for index in kept]
        self.amax = [self.amax[index] for index in kept]
        self.scale = [self.scale[index] for index in kept]


class ScaleLog:
    """Collects the series of one model. All its layers share one log."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, Role], ScaleSeries] = {}
        self._stride = 1

    def note(self, layer: str, role: Role, step: int, amax: float, scale: float, largest: float) -> None:
        """Keep one reading, unless its step is left out."""
        if step % self._stride:
            return
        series = self._series.setdefault((layer, role), ScaleSeries(layer, role, largest))
        series.steps.append(step)
        series.amax.append(amax)
        series.scale.append(scale)
        if len(series.steps) > MOST_POINTS:
            self._stride *= 2
            for each in self._series.values():
                each.thin(self._stride)

    def take(self) -> list[ScaleSeries]:
        """What was collected since the last time, layer by layer; forgotten here."""
        taken = [series for series in self._series.values() if series.steps]
        self._series, self._stride = {}, 1
        return taken
