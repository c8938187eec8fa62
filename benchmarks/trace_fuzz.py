"""Damages real traces at random and opens them: never a crash, a hang, silence about a cut, or too much memory.

    python benchmarks/trace_fuzz.py FILE... [--minutes 5 | --rounds 200] [--seed 1] [--keep DIR]

Every mutant is opened and summarised in a child process, which has to read it or to refuse it with a sentence within
`--seconds`, with at most 3 times the file's size and 200 MB more memory than a child that does nothing. A mutant that
was cut has to be refused or reported as cut. Mutants that fail are kept in `--keep`. Needs a system with fork.
"""

import argparse
import gzip
import os
import random
import resource
import signal
import sys
import time
import traceback
import zlib
from dataclasses import dataclass
from pathlib import Path

from gptscope.profiling.trace import TraceError, lane_of, open_trace
from gptscope.profiling.trace.analysis import Linked, diff_traces, summarise

FREE_BYTES = 200e6
FILE_SIZES = 3
_TOKENS = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"},{", b"]}", b"\xff", b"\x00", b"\x07", b"\\ud800"),
    *(b"nan", b"Infinity", b"N/A", b"null", b"-1", b"1e999", b"9" * 40, b"\xef\xbb\xbf", b"\x1f\x8b", b"PK\x03\x04"),
    *(b'"ph":"B"', b'"ph":"E"', b'"ts":"x"', b'"dur":-5', b'"pid":[]', b'"args":[1]', b'"id":{}', b'"traceEvents":['),
)
_KINDS = ("cut", "cut packed", "tokens", "bytes", "swap", "repeat", "drop", "packed bytes", "bomb", "lines")


@dataclass(frozen=True)
class Mutant:
    """A damaged file."""

    data: bytes
    what: str
    is_cut: bool


def mutate(data: bytes, rng: random.Random) -> Mutant:
    """Damage a file in one of many ways; `data` is its uncompressed text."""
    kind = rng.choice(
        ("cut", "cut packed", "tokens", "bytes", "swap", "repeat", "drop", "packed bytes", "bomb", "lines")
    )
    if kind == "cut":
        return Mutant(data[: rng.randrange(1, len(data))].rstrip(b" \r\n\t}"), kind, is_cut=True)
    if kind == "cut packed":
        packed = gzip.compress(data, 1)
        return Mutant(packed[: rng.randrange(20, len(packed) - 12)], kind, is_cut=True)
    text = bytearray(data)
    if kind == "packed bytes":
        text = bytearray(gzip.compress(data, 1))
    if kind == "bomb":
        at = rng.randrange(len(data))
        packer = zlib.compressobj(9, wbits=31)
        head = packer.compress(data[:at])
        filling = rng.choice((b" ", b"[", b'{"ph":"X","ts":1,"dur":1},', b"9", b'"'))
        body = b"".join(packer.compress(filling * (1_000_000 // len(filling))) for _ in range(rng.randrange(20, 300)))
        return Mutant(head + body + packer.flush(), kind, is_cut=False)
    for _ in range(rng.randrange(1, 12)):
        at, length = rng.randrange(len(text)), rng.randrange(1, 400)
        if kind in {"bytes", "packed bytes"}:
            text[at] = rng.randrange(256)
        elif kind == "tokens":
            text[at : at + rng.choice((0, 1, 8))] = rng.choice(_TOKENS)
        elif kind == "swap":
            other = rng.randrange(len(text))
            text[at : at + length], text[other : other + length] = text[other : other + length], text[at : at + length]
        elif kind == "repeat":
            text[at:at] = text[at : at + length] * rng.randrange(1, 20)
        elif kind == "drop":
            del text[at : at + length]
        else:
            lines = bytes(text).split(b"\n")
            place = rng.randrange(len(lines))
            lines[place : place + 1] = [lines[place]] * rng.choice((0, 2))
            text = bytearray(b"\n".join(lines)) or bytearray(b" ")
    return Mutant(bytes(text), kind, is_cut=False)


def look_at(path: Path, *, is_cut: bool) -> str:
    """Open and summarise; a sentence when that is not as it should be."""
    try:
        trace = open_trace(path)
    except TraceError as error:
        return "" if str(error).endswith(".") else f"the refusal is no sentence: {error}"
    linked = Linked.of(trace)
    summary = summarise(linked)
    lane_of(trace)
    diff_traces(linked, linked, "kernel")
    for row in range(0, len(trace), max(1, len(trace) // 5)):
        trace.args(row)
    if is_cut and not any(note.kind in {"truncated", "skipped", "metadata"} for note in summary.health):
        return "it was cut and nothing was said"
    return ""


def child(path: Path | None, seconds: int, *, is_cut: bool = False) -> tuple[str, int]:
    """Look at a file in a child process; what was wrong, and its peak memory in bytes."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        signal.alarm(seconds)
        problem = ""
        try:
            problem = look_at(path, is_cut=is_cut) if path is not None else ""
        except BaseException:  # noqa: BLE001  (whatever it is, it is a finding)
            problem = traceback.format_exc()
        os.write(writing, problem.encode()[-4000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        problem = pipe.read().decode(errors="replace")
    _, status, usage = os.wait4(pid, 0)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) == signal.SIGALRM
        problem = f"longer than {seconds} s" if late else f"ended by signal {os.WTERMSIG(status)}"
    return problem, usage.ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path())
    options = parser.parse_args()
    rng = random.Random(options.seed)
    end = None if options.minutes is None else time.monotonic() + options.minutes * 60
    files = [(path.name, gzip.decompress(data) if (data := path.read_bytes())[:2] == b"\x1f\x8b" else data)
             for path in options.files]  # fmt: skip
    _, idle_bytes = child(None, options.seconds)
    failures, done, most = 0, 0, 0.0
    path = options.keep / f"mutant-{os.getpid()}"
    while (time.monotonic() < end) if end is not None else (done < options.rounds):
        name, data = rng.choice(files)
        mutant = mutate(data, rng)
        path.write_bytes(mutant.data)
        begun = time.monotonic()
        problem, peak = child(path, options.seconds, is_cut=mutant.is_cut)
        most = max(most, time.monotonic() - begun)
        extra, allowed = peak - idle_bytes, FILE_SIZES * len(mutant.data) + FREE_BYTES
        if not problem and extra > allowed:
            problem = f"{extra / 1e6:.0f} MB of memory for {len(mutant.data) / 1e6:.1f} MB"
        done += 1
        if problem:
            failures += 1
            kept = options.keep / f"failed-{options.seed}-{done}"
            path.replace(kept)
            print(f"{name} {mutant.what} (kept as {kept}):\n{problem}")
    path.unlink(missing_ok=True)
    print(f"{done} mutants of {len(files)} files, {failures} failures, slowest {most:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
