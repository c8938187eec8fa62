"""A process that records an endless run until it is killed. Arguments: library folder, experiment id.

Prints the number of every slice right after it was handed to the recorder.
"""

import itertools
import sys
import time
from pathlib import Path

from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import ExperimentStarted, MachineInfo, RunStarted, SliceDone, TraceChunk
from gptscope.profiling.store.library import Library
from gptscope.profiling.store.recorder import Recorder

folder, experiment_id = Path(sys.argv[1]), sys.argv[2]
limit = int(sys.argv[3]) if len(sys.argv) > 3 else None
machine = MachineInfo(
    hostname="test",
    system="Linux",
    cpu_name="test CPU",
    physical_cores=2,
    logical_cores=2,
    memory_bytes=10**10,
    cpu_features=(),
    device="cpu",
    device_name="test CPU",
    compiler=None,
)
run_id = f"{experiment_id}-a"
workload, variant = Workload(), Variant()
with Library(folder):
    recorder = Recorder(folder)
    recorder.add(
        ExperimentStarted(
            experiment_id=experiment_id,
            experiment=Experiment(model="bundled", workload=workload, variants=(variant,)),
            run_ids=(run_id,),
            started_unix_ns=time.time_ns(),
        )
    )
    recorder.add(
        RunStarted(
            run_id=run_id,
            experiment_id=experiment_id,
            variant=variant,
            name="endless",
            workload=workload,
            model="bundled",
            command="",
            started_unix_ns=time.time_ns(),
            machine=machine,
            versions={},
            environment={},
            threads=1,
            seed=1,
        )
    )
    for number in itertools.count() if limit is None else range(limit):
        recorder.add(SliceDone(run_id=run_id, slice=number, attempt=0, pair=number, seconds=0.1))
        recorder.add(TraceChunk(run_id=run_id, offset=1000 * number, last=False), b"x" * 1000)
        print(number, time.monotonic(), flush=True)
        time.sleep(0.002)
    recorder.close()
