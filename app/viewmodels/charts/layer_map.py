"""The layer map: error added by each module when only it is quantized, and the time that it saves."""

import csv
import io
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gptscope.app.viewmodels import formatting as fmt
from gptscope.profiling.records import LayerErrors, ModuleError

LOWEST = 1e-6
"""Nats; smaller errors than this are drawn as none."""


@dataclass(frozen=True)
class Cell:
    """One module. `level`: its place on the heat ramp, 0 to 1. `rank`: 1 is the worst kept one, 0: not kept."""

    module: str
    title: str
    kl: float | None
    level: float
    rank: int
    saved_us: float


@dataclass(frozen=True)
class LayerMap:
    """Everything the heat map shows. `cells` is by row and layer."""

    rows: tuple[str, ...]
    layers: int
    cells: dict[tuple[int, int], Cell]
    row_saved_us: tuple[float, ...]
    sums: tuple[float, ...]
    """KL of each layer's modules together."""
    outside: tuple[Cell, ...]
    """Modules that belong to no layer, such as `lm_head`."""
    low: float
    high: float
    """Ends of the logarithmic ramp, nats."""
    unit: str
    """`ms` or `µs` of the saved times."""
    per: str
    """`token`, `step` or `prompt`."""
    summary: str

    def find(self, module: str) -> Cell | None:
        """A cell by its module's path."""
        return next((cell for cell in (*self.cells.values(), *self.outside) if cell.module == module), None)


def build(errors: LayerErrors | None, kept: Sequence[str] = (), per: str = "step") -> LayerMap | None:
    """The map, kept modules numbered in the order in which they are given."""
    if errors is None or not errors.modules:
        return None
    low, high = _ends(errors.modules)
    ranks = {module: index + 1 for index, module in enumerate(kept)}
    inner = [one for one in errors.modules if one.layer is not None]
    parts = tuple(dict.fromkeys(one.part for one in inner))
    cells: dict[tuple[int, int], Cell] = {}
    for one in inner:
        assert one.layer is not None
        cells[parts.index(one.part), one.layer] = _cell(one, low, high, ranks)
    layers = max((one.layer or 0 for one in inner), default=-1) + 1
    saved = tuple(sum(cell.saved_us for (row, _), cell in cells.items() if row == index) for index in range(len(parts)))
    sums = tuple(
        sum(cell.kl or 0.0 for (_, column), cell in cells.items() if column == layer) for layer in range(layers)
    )
    worst = max(errors.modules, key=lambda one: math.inf if one.kl_mean is None else one.kl_mean)
    return LayerMap(
        rows=tuple(part_title(part) for part in parts),
        layers=layers,
        cells=cells,
        row_saved_us=saved,
        sums=sums,
        outside=tuple(_cell(one, low, high, ranks) for one in errors.modules if one.layer is None),
        low=low,
        high=high,
        unit="ms" if max((abs(value) for value in saved), default=0.0) >= 1e3 else "µs",
        per=per,
        summary=f"{len(errors.modules)} modules; the worst is {module_title(worst)} with {kl_text(worst.kl_mean)}.",
    )


def _ends(modules: Collection[ModuleError]) -> tuple[float, float]:
    known = [one.kl_mean for one in modules if one.kl_mean is not None and one.kl_mean > LOWEST]
    if not known:
        return LOWEST, 10 * LOWEST
    low, high = 10.0 ** math.floor(math.log10(min(known))), 10.0 ** math.ceil(math.log10(max(known)))
    return max(low, high / 1e4), max(high, 10 * low)


def _cell(one: ModuleError, low: float, high: float, ranks: dict[str, int]) -> Cell:
    level = 1.0
    if one.kl_mean is not None:
        inside = min(max(one.kl_mean, low), high)
        level = math.log(inside / low) / math.log(high / low)
    return Cell(
        module=one.module,
        title=module_title(one),
        kl=one.kl_mean,
        level=level,
        rank=ranks.get(one.module, 0),
        saved_us=one.reference_us - one.candidate_us,
    )


def part_title(part: str) -> str:
    """`attn.qkv.q` is `q`, `mlp.down` is `down`."""
    return part.rsplit(".", 1)[-1]


def module_title(one: ModuleError) -> str:
    """`layer 28, down`."""
    return part_title(one.part) if one.layer is None else f"layer {one.layer}, {part_title(one.part)}"


def kl_text(kl: float | None) -> str:
    """`KL +0.0380`, or that the output broke."""
    return "output broken (NaN or infinity)" if kl is None else f"KL {'+' if kl > 0 else ''}{fmt.number(kl)}"


def short_kl(kl: float | None) -> str:
    """Two digits, where space is short: `0.038`, `7.8e−6`."""
    if kl is None:
        return "broken"
    return fmt.short_power(kl) if 0 < abs(kl) < 1e-4 else f"{kl:.2g}".replace("-", fmt.MINUS)


def decade_text(decade: float) -> str:
    """A power of ten: `0.001`, `1e−6`."""
    return f"1e{fmt.MINUS}{-round(math.log10(decade))}" if decade < 1e-4 else f"{decade:g}"


def saved_text(saved_us: float) -> str:
    """`saves 0.15 ms`, `costs 20 µs`."""
    return f"{'saves' if saved_us >= 0 else 'costs'} {fmt.duration(abs(saved_us) * 1e-6)}"


def read_out(cell: Cell | None) -> str:
    """`layer 28, down   KL +0.0380 alone   saves 0.15 ms`."""
    return "" if cell is None else f"{cell.title}   {kl_text(cell.kl)} alone   {saved_text(cell.saved_us)}"


def map_csv(errors: LayerErrors | None) -> str:
    """One row per module, as it was measured."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = ("kl_mean", "logit_sqnr_db", "output_sqnr_db", "output_cosine", "reference_us", "candidate_us")
    writer.writerow(["module", "layer", "part", "parameters", *fields])
    for one in errors.modules if errors is not None else ():
        layer = "" if one.layer is None else one.layer
        values = [getattr(one, field) for field in fields]
        row = ["" if value is None else repr(value) for value in values]
        writer.writerow([one.module, layer, one.part, one.parameters, *row])
    return out.getvalue()
