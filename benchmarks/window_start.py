"""Milliseconds from the start of `gptscope` to the window's first paint, and the memory of the window's process.

    python benchmarks/window_start.py [--times 5]

Starts the program again and again on a display of its own (Xvfb with a window manager), with a warm file cache: one
start before the counted ones fills it. Counted from just before the process is started to the end of the first paint,
on one clock. Beside it: when the charts are made; whether one can look at History and type a number while the engine
still starts, and for how long the window did not react meanwhile; when the engine has answered; the process's resident
memory then, without a model. Ends with exit code 1 when a figure is missed.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from desktop import desktop

MOST_PAINT_MS = 500.0
MOST_MIB = 200.0
PROBE = Path(__file__).with_name("window_probe.py")
COLUMNS = ("first paint", "charts made", "used", "not reacting", "engine answered", "resident MiB", "own MiB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    with desktop() as environment:
        rows = [start_once(environment) for _ in range(options.times + 1)][1:]
    print("milliseconds since the process was started, but `not reacting`, the longest time in milliseconds")
    print("  " + "  ".join(f"{name:>15}" for name in COLUMNS))
    for row in rows:
        print("  " + "  ".join(f"{value:>15.0f}" for value in row))
    middle = [statistics.median(column) for column in zip(*rows, strict=True)]
    print("  " + "  ".join(f"{value:>15.0f}" for value in middle) + "  (median)")
    found = dict(zip(COLUMNS, middle, strict=True))
    paint, memory = found["first paint"], found["resident MiB"]
    usable = all(row[2] < row[4] for row in rows)
    print(f"  first paint {paint:.0f} ms, asked: under {MOST_PAINT_MS:.0f} ms")
    print(f"  memory {memory:.0f} MiB, asked: under {MOST_MIB:.0f} MiB")
    print(f"  used before the engine had answered: {'in every start' if usable else 'NOT in every start'}")
    return 0 if paint < MOST_PAINT_MS and memory < MOST_MIB and usable else 1


def start_once(environment: dict[str, str]) -> list[float]:
    """One start; values in the order of `COLUMNS`."""
    begun_ns = time.perf_counter_ns()
    done = subprocess.run(
        [sys.executable, "-P", str(PROBE), "start"],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    said = {words[0]: [int(word) for word in words[1:]] for words in map(str.split, done.stdout.splitlines())}
    if done.returncode != 0 or "memory" not in said:
        raise SystemExit(f"The window ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    if not said["painted"][1] or not said["used"][1]:
        raise SystemExit("The window was not shown, or could not be used before the engine had answered.")
    moments = {name: (said[name][0] - begun_ns) / 1e6 for name in ("painted", "ready", "used", "answered")}
    resident, own = (number / 2**20 for number in said["memory"])
    not_reacting = said["answered"][1] / 1e6
    return [moments["painted"], moments["ready"], moments["used"], not_reacting, moments["answered"], resident, own]


if __name__ == "__main__":
    sys.exit(main())
