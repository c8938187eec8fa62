"""Exports: one exporter, one file. All write whole files or none."""

from gptscope.profiling.export.chrome_trace import export_trace
from gptscope.profiling.export.csv import export_kernels, export_steps, kernel_csv, step_csv
from gptscope.profiling.export.files import ExportError, write_whole
from gptscope.profiling.export.json import export_json, run_document, run_json

__all__ = [
    "ExportError",
    "export_json",
    "export_kernels",
    "export_steps",
    "export_trace",
    "kernel_csv",
    "run_document",
    "run_json",
    "step_csv",
    "write_whole",
]
