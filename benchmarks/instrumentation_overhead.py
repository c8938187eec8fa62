"""What measuring costs: decode tokens per second of gptscope over a bare loop on the same model, in alternation.

    python benchmarks/instrumentation_overhead.py [--model bundled] [--pairs 12] [--runs 4]

Two comparisons, each as pairs in changing order with the median of the pairs' ratios and its bootstrap interval:

* slice: in one process, a worker's slice (stopwatch, samples as frames into a pipe that another process reads, peak
  memory) against a plain loop over the same `DecodeSession` with one clock reading before it and one after.
* program: a whole `gptscope run` (client, engine, telemetry, worker, no profile) against a process that only loads the
  same model and runs the plain loop.

Ends with exit code 1 when a whole interval lies below `LEAST_RATIO`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from gptscope.profiling.channel import FrameWriter, read_frames
from gptscope.profiling.engine.worker_handle import worker_environment
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.metrics.statistics import bootstrap_interval
from gptscope.profiling.records import LoadVariant, MemoryPeak

LEAST_RATIO = 0.98
Sides = dict[str, Callable[[], float]]
"""Name -> measure once: tokens per second."""


def main() -> int:
    options = parse_options()
    if options.read_frames:  # what the engine does with a worker's records
        for _ in read_frames(sys.stdin.fileno()):
            pass
        return 0
    if options.bare_json:
        json.dump({"tokens_per_s": bare_process(options)}, sys.stdout)
        return 0
    print(
        f"decode, {options.model}, {options.precision}, fuse {options.fuse}, {options.kv_cache} KV cache, "
        f"{options.new_tokens} tokens, {options.threads or 'default'} threads"
    )
    good = report("slice", measure(slice_sides(options), options.pairs))
    if options.runs > 0:
        good = report("program", measure(program_sides(options), options.runs)) and good
    return 0 if good else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--fuse", default="none", help="comma separated, or all")
    parser.add_argument("--kv-cache", default="static")
    parser.add_argument("--context", type=int, default=16)
    parser.add_argument("--new-tokens", type=int, default=200)
    parser.add_argument("--steps", type=int, default=6, help="sequences per program run")
    parser.add_argument("--pairs", type=int, default=12, help="of slices")
    parser.add_argument("--runs", type=int, default=4, help="pairs of program runs; 0: none")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--read-frames", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bare-json", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(sides: Sides, pairs: int) -> dict[str, list[float]]:
    """Run the sides next to each other, changing who goes first."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for pair in range(pairs):
        order = list(sides.items())
        for name, run in order if pair % 2 == 0 else order[::-1]:
            rates[name].append(run())
    return rates


def report(what: str, rates: dict[str, list[float]]) -> bool:
    """Print one comparison; True unless its whole interval is too low."""
    ratios = [ours / bare for ours, bare in zip(rates["gptscope"], rates["bare loop"], strict=True)]
    low, high = bootstrap_interval(ratios)
    medians = "  ".join(f"{name} {statistics.median(values):8.1f} tokens/s" for name, values in rates.items())
    print(
        f"  {what:<8} {medians}  ratio {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}] of {len(ratios)} pairs"
        f"  (asked: {LEAST_RATIO})",
        flush=True,
    )
    return high >= LEAST_RATIO


# ------------------------------------------------------------------------------------------------ in one process


def slice_sides(options: argparse.Namespace) -> Sides:
    """A worker's slice and a plain loop on one loaded model."""
    from gptscope.profiling.worker import memory
    from gptscope.profiling.worker.reporting import StepReporter

    reader = subprocess.Popen([sys.executable, "-P", __file__, "--read-frames"], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    variant, output = load(options, reader.stdin)
    produced = options.new_tokens - 1

    def instrumented() -> float:
        reporter = StepReporter(output, "run", "measure", 0)
        begun_ns = time.perf_counter_ns()
        variant.bench.run(reporter, 1)
        output.emit(MemoryPeak(run_id="run", process_bytes=memory.process_peak_bytes()))
        spent_ns = time.perf_counter_ns() - begun_ns - reporter.durations_ns["prefill"][0]
        return produced / spent_ns * 1e9

    return {"gptscope": instrumented, "bare loop": bare_loop(variant, options)}


def load(options: argparse.Namespace, pipe: BinaryIO):  # type: ignore[no-untyped-def]
    """Load the model as a worker does, and warm it up."""
    from gptscope.profiling.worker.output import Output
    from gptscope.profiling.worker.variant import load_variant
    from gptscope.profiling.worker.warmup import warm_up

    variant = Variant(
        precision=options.precision,
        fusions=() if options.fuse == "none" else tuple(options.fuse.split(",")),
        kv_cache=options.kv_cache,
        threads=options.threads,
    )
    work = Workload(context=options.context, new_tokens=options.new_tokens)
    experiment = Experiment(model=options.model, workload=work, variants=(variant,))
    output = Output(FrameWriter(pipe))
    command = LoadVariant(run_id="run", experiment_id="benchmark", experiment=experiment, variant_index=0)
    loaded = load_variant(command, output, os.environ)
    warm_up(loaded.bench, output, "run")
    return loaded, output


def bare_loop(variant, options: argparse.Namespace) -> Callable[[], float]:  # type: ignore[no-untyped-def]
    """Decode tokens per second of a plain loop, prefill apart."""
    import torch

    from gptscope.models.decoding.session import DecodeSession

    prepared = variant.prepared
    tokens_BL = variant.source.beginning(1, options.context).to(prepared.device)
    session = DecodeSession(prepared, 1, options.context + options.new_tokens)

    def run() -> float:
        session.prefill(tokens_BL)
        begun_ns = time.perf_counter_ns()
        for _ in range(options.new_tokens - 1):
            session.step()
        if prepared.device.type == "cuda":
            torch.cuda.synchronize()
        return (options.new_tokens - 1) / (time.perf_counter_ns() - begun_ns) * 1e9

    return run


# ---------------------------------------------------------------------------------------------- as whole programs


def program_sides(options: argparse.Namespace) -> Sides:
    """`gptscope run` and a process with nothing but the plain loop."""
    environment = worker_environment(os.environ, options.threads)
    return {
        "gptscope": lambda: run_gptscope(options),
        "bare loop": lambda: run_bare(options, environment),
    }


def run_gptscope(options: argparse.Namespace) -> float:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        words = ["-m", "gptscope.app", "run", *shared_words(options), "--steps", str(options.steps)]
        call([*words, "--profile-steps", "0", "--no-keep", "--json", str(result)], dict(os.environ))
        document = json.loads(result.read_text())
    return float(document["runs"][0]["summary"]["tokens_per_s"]["value"])


def run_bare(options: argparse.Namespace, environment: dict[str, str]) -> float:
    words = [__file__, *shared_words(options), "--steps", str(options.steps), "--bare-json"]
    return float(json.loads(call(words, environment))["tokens_per_s"])


def bare_process(options: argparse.Namespace) -> float:
    """Load, warm up, run as many sequences as `gptscope run` does; tokens over seconds of all together."""
    with Path(os.devnull).open("wb") as nowhere:
        variant, _ = load(options, nowhere)
    run = bare_loop(variant, options)
    run()
    rates = [run() for _ in range(options.steps)]
    return len(rates) / sum(1 / rate for rate in rates)


def shared_words(options: argparse.Namespace) -> list[str]:
    """Options that both programs understand."""
    words = ["--model", options.model, "--precision", options.precision, "--fuse", options.fuse]
    words += ["--kv-cache", options.kv_cache, "--context", str(options.context)]
    words += ["--new-tokens", str(options.new_tokens)]
    return words if options.threads is None else [*words, "--threads", str(options.threads)]


def call(words: Sequence[str], environment: dict[str, str]) -> str:
    """Run this Python with these words; its standard output."""
    done = subprocess.run([sys.executable, "-P", *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
