"""Runs the machine's ceilings with torch kernels; how they are measured and kept is in `profiling.machine.ceilings`."""

from gptscope.profiling.records import MeasurePeaks
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.output import Output


def measure_peaks(command: MeasurePeaks, output: Output) -> None:
    raise RequestError("not there yet")
