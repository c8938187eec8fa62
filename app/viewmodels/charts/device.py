"""Tiles of the device panel from the sensors' series."""

from dataclasses import dataclass

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.chart_data import Floats
from gptscope.app.viewmodels.experiment_view import Sensors
from gptscope.app.viewmodels.series import TimeSeries
from gptscope.profiling.records import MachineInfo

BUSY_PERCENT = 15.0
"""Load of other programs from which on the tile is drawn in the warning colour."""


@dataclass(frozen=True)
class Tile:
    """One sensor: newest value, what it is part of, its course. `top` is the value at the tile's upper edge."""

    title: str
    value: str
    of: str
    x: Floats
    y: Floats
    top: float
    warn: bool = False


def tiles(sensors: Sensors, machine: MachineInfo | None, zero_ns: int | None) -> tuple[Tile, ...]:
    """What there is to show; a sensor without any sample says n/a."""
    zero = zero_ns or 0
    cores = machine.logical_cores if machine is not None else 1
    full = 100.0 * cores
    made = [
        _percent("CPU load, our worker", sensors.worker_percent, zero, full, f"of {fmt.number(full)} %"),
        _percent("Other programs", sensors.other_percent, zero, full, ""),
        _clock(sensors, zero),
        _memory(sensors, machine, zero),
    ]
    if sensors.gpu_percent.last is not None:
        made += [
            _percent("GPU utilisation", sensors.gpu_percent, zero, 100.0, ""),
            _plain("GPU power", sensors.gpu_power_w, zero, "W"),
            _plain("GPU temperature", sensors.gpu_temperature_c, zero, "°C"),
        ]
    return tuple(made)


def _percent(title: str, series: TimeSeries, zero: int, top: float, of: str) -> Tile:
    x, y = series.points(zero)
    value = fmt.percent(round(series.last, 2) / 100 if series.last is not None else None)
    warn = title == "Other programs" and (series.last or 0.0) >= BUSY_PERCENT
    return Tile(title, value, of, x, y, top, warn)


def _clock(sensors: Sensors, zero: int) -> Tile:
    series = sensors.frequency_mhz
    x, y = series.points(zero)
    if series.last is None:
        return Tile("CPU clock", "n/a", "not readable here", x, y, 1.0)
    top = sensors.max_frequency_mhz or series.peak or 1.0
    of = f"max {fmt.number(sensors.max_frequency_mhz / 1e3)}" if sensors.max_frequency_mhz else ""
    return Tile("CPU clock", f"{fmt.number(series.last / 1e3)} GHz", of, x, y, top)


def _memory(sensors: Sensors, machine: MachineInfo | None, zero: int) -> Tile:
    x, y = sensors.rss_bytes.points(zero)
    of = f"of {fmt.quantity(machine.memory_bytes, 'bytes')}" if machine is not None else ""
    top = 1.15 * (sensors.rss_bytes.peak or 1.0)
    return Tile("Memory of the worker", fmt.quantity(sensors.rss_bytes.last, "bytes"), of, x, y, top)


def _plain(title: str, series: TimeSeries, zero: int, unit: str) -> Tile:
    x, y = series.points(zero)
    value = f"{fmt.number(series.last)} {unit}" if series.last is not None else "n/a"
    return Tile(title, value, "", x, y, 1.15 * (series.peak or 1.0))
