"""A client to be killed: starts an engine and an experiment whose workers have children; prints all process ids."""

import json
import sys

from gptscope.profiling.client import EngineClient, python_command
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import Hello, StartExperiment, StepSamples


def main(worker_command: str, variant_name: str) -> None:
    variants = (Variant(name=variant_name), Variant(name=variant_name))
    experiment = Experiment(model="fake", workload=Workload(steps=1), variants=variants, device="cpu")
    client = EngineClient(python_command("--worker-command", worker_command))
    client.start()
    workers, warm = [], 0
    for record, _ in client.stream(StartExperiment(experiment=experiment, experiment_id="e")):
        if isinstance(record, Hello) and record.role == "worker":
            workers.append(record.pid)
        if isinstance(record, StepSamples) and record.phase == "warmup":
            warm += 1
            if warm == len(variants):
                print(json.dumps({"engine": client.pid, "workers": workers}), flush=True)
    print("over", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
