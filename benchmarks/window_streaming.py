"""How the window does while a decode run of the bundled model streams: its thread, its frames, the run's speed.

    python benchmarks/window_streaming.py thread [--seconds 30]
    python benchmarks/window_streaming.py speed [--pairs 3] [--kept FILE]

`thread`: processor time of the window's thread by the wall clock, and the longest gap between two redraws and between
two beats of a quick timer (for so long the window could not react).
`speed`: tokens per second of a run with the window open and of the same run by `gptscope run`, alternately (A B, B A),
each in fresh processes; the median of the pairs' ratios with its 95 % bootstrap interval. Needs a quiet machine, and
takes about 20 s per pair; `--kept` adds the pairs to a file and reports all pairs in it, so that one may come back.

The window is open on a display of its own (Xvfb with a window manager) at 1440 x 900, its charts in view. Ends with
exit code 1 when a figure is missed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from desktop import desktop

from gptscope.profiling.metrics.statistics import bootstrap_interval, median

MOST_BUSY = 0.20
MOST_GAP_MS = 50.0
LEAST_RATIO = 0.97
PROBE = Path(__file__).with_name("window_probe.py")
NEW_TOKENS, CONTEXT = 200, 64
SEQUENCES = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("thread", "speed"))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--kept", type=Path, help="JSON lines, one pair each")
    options = parser.parse_args()
    with desktop() as environment:
        if options.what == "thread":
            return watch_thread(environment, options.seconds)
        return compare_speed(environment, options.pairs, options.kept)


def watch_thread(environment: dict[str, str], seconds: float) -> int:
    said = window(environment, "watch", str(seconds), str(NEW_TOKENS))
    wall_s, thread_s, process_s, gaps, middle_ns, longest_ns, beat_ns = said["watched"]
    busy, longest_ms, beat_ms = thread_s / wall_s, longest_ns / 1e6, beat_ns / 1e6
    print(f"  {wall_s:.1f} s of a streaming run, {said['speed'][0]:.0f} tokens/s, {gaps + 1:.0f} redraws")
    print(f"  window's thread busy {busy:.1%} (all threads {process_s / wall_s:.1%}), asked: under {MOST_BUSY:.0%}")
    print(f"  gap between redraws: median {middle_ns / 1e6:.1f} ms, longest {longest_ms:.1f} ms")
    print(
        f"  gap between beats of a 10 ms timer: longest {beat_ms:.1f} ms; asked of both: at most {MOST_GAP_MS:.0f} ms"
    )
    return 0 if busy < MOST_BUSY and max(longest_ms, beat_ms) <= MOST_GAP_MS else 1


def compare_speed(environment: dict[str, str], pairs: int, kept: Path | None) -> int:
    found: list[tuple[float, float]] = []
    if kept is not None and kept.exists():
        found = [tuple(json.loads(line)) for line in kept.read_text("utf-8").splitlines()]
    print("  with window   headless   ratio   (tokens/s)")
    for _ in range(pairs):
        if len(found) % 2 == 0:
            shown, plain = with_window(environment), headless(environment)
        else:
            plain, shown = headless(environment), with_window(environment)
        found.append((shown, plain))
        print(f"  {shown:>11.1f}  {plain:>9.1f}  {shown / plain:>6.3f}", flush=True)
        if kept is not None:
            with kept.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(found[-1])}\n")
    ratios = [shown / plain for shown, plain in found]
    low, high = bootstrap_interval(ratios)
    middle = median(ratios)
    print(f"  {len(ratios)} pairs: ratio {middle:.3f} (95 %: {low:.3f} to {high:.3f}), asked: at least {LEAST_RATIO}")
    return 0 if middle >= LEAST_RATIO else 1


def with_window(environment: dict[str, str]) -> float:
    """Tokens per second of a run that the window shows."""
    return window(environment, "run", str(SEQUENCES), str(NEW_TOKENS))["speed"][0]


def headless(environment: dict[str, str]) -> float:
    """Tokens per second of the same run without a window."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        done = subprocess.run(
            [
                sys.executable, "-P", "-m", "gptscope.app", "run", "--model", "bundled", "--steps", str(SEQUENCES),
                "--new-tokens", str(NEW_TOKENS), "--context", str(CONTEXT), "--profile-steps", "0",
                "--json", str(result),
            ],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"gptscope run ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
        (run,) = json.loads(result.read_text("utf-8"))["runs"]
    return float(run["summary"]["tokens_per_s"]["value"])


def window(environment: dict[str, str], *words: str) -> dict[str, list[float]]:
    """What the window with its stopwatches says, by name."""
    done = subprocess.run(
        [sys.executable, "-P", str(PROBE), *words], env=environment, capture_output=True, text=True, check=False
    )
    said = {line[0]: [float(word) for word in line[1:]] for line in map(str.split, done.stdout.splitlines())}
    if done.returncode != 0 or "speed" not in said:
        raise SystemExit(f"The window ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return said


if __name__ == "__main__":
    sys.exit(main())
