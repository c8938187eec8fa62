"""Prints what TensorBoard's profiler plugin makes of traces: its kernels' and operators' sums, in microseconds.

python plugin_sums.py TRACE...
"""

import json
import logging
import sys
import tempfile
import warnings

warnings.simplefilter("ignore")  # it was last released in 2023
logging.disable(logging.WARNING)

from torch_tb_profiler.profiler.data import RunProfileData  # noqa: E402


def sums(path: str) -> dict[str, dict[str, list[float]]]:
    data = RunProfileData.parse("rank0", 0, path, tempfile.gettempdir())
    kernels = data.kernel_stat.itertuples() if data.has_kernel else ()
    return {
        "kernels": {kernel.Index: [kernel.count, kernel.sum] for kernel in kernels},
        "operators": {
            row.name: [row.calls, row.host_duration, row.self_device_duration, row.device_duration]
            for row in data.op_list_groupby_name
        },
    }


print(json.dumps([sums(path) for path in sys.argv[1:]]))
