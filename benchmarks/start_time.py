"""Seconds from the start of `gptscope run` to the first measured step, with a warm file cache.

    python benchmarks/start_time.py [--model bundled] [--times 5] [--option=--precision=bf16 ...]

Runs the whole program again and again. The total is counted from outside: from just before the process is started to
the first measured step, whose time stamp lies on the same clock (`time.perf_counter_ns` counts from the same moment in
all processes of a machine). Where the time goes is shown beside it: client and engine, the worker's start and imports,
loading, warm-up. The first run only fills the file cache and measures the machine's peaks. Ends with exit code 1 when
the best total is above `MOST_SECONDS`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MOST_SECONDS = 8.0


def main() -> int:
    options = parse_options()
    command = [
        sys.executable, "-P", "-m", "gptscope.app", "run", "--model", options.model, "--steps", "1",
        "--new-tokens", "8", "--context", "16", "--profile-steps", "0", "--no-keep", *options.option,
    ]  # fmt: skip
    print(" ".join(command[3:]))
    rows = [start_once(command) for _ in range(options.times + 1)][1:]
    columns = list(rows[0])
    print("  " + "  ".join(f"{name:>16}" for name in columns))
    for row in rows:
        print("  " + "  ".join(f"{row[name]:>14.2f} s" for name in columns))
    medians = {name: statistics.median(row[name] for row in rows) for name in columns}
    print("  " + "  ".join(f"{medians[name]:>14.2f} s" for name in columns) + "  (median)")
    best = min(row["total"] for row in rows)
    print(f"  best {best:.2f} s, asked: under {MOST_SECONDS:g} s; load of the machine now: {load()}")
    return 0 if best < MOST_SECONDS else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--option", action="append", default=[], help="passed on to `gptscope run`")
    return parser.parse_args()


def start_once(command: list[str]) -> dict[str, float]:
    """Run the program once; seconds of each part of its start."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        begun_ns = time.perf_counter_ns()
        done = subprocess.run([*command, "--json", str(result)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"gptscope run ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
        (run,) = json.loads(result.read_text())["runs"]
    return parts(run, begun_ns)


def parts(run: dict[str, Any], begun_ns: int) -> dict[str, float]:
    """The start of one run in seconds, part by part."""
    measured = [start for samples in run["samples"] if samples["phase"] == "measure" for start in samples["start_ns"]]
    total = (min(measured) - begun_ns) / 1e9
    in_engine, summary = run["summary"]["first_step_s"], run["summary"]
    return {
        "client, engine": total - in_engine,
        "worker's imports": summary["start_s"],
        "load": summary["load_s"],
        "warm-up, rest": in_engine - summary["start_s"] - summary["load_s"],
        "total": total,
    }


def load() -> str:
    """Processes that want to run, where the system tells."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main())
