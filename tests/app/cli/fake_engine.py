"""An engine that plays a script. Arguments: a file of frames, what to do after them, signals to send to its client.

`end`: say goodbye when asked. `hang`: go on sending telemetry until cancelled, then send `after-cancel`. `die`: crash.
`deaf`: ignore everything, even a cancel.
"""

import os
import sys
import threading
import time
from pathlib import Path

from gptscope.profiling import channel
from gptscope.profiling.records import (
    Bye,
    Cancel,
    CpuSample,
    ExperimentFinished,
    Hello,
    RunFinished,
    Shutdown,
    StartExperiment,
    Telemetry,
)

script, mode = Path(sys.argv[1]), sys.argv[2]


def say(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


cancelled = threading.Event()


def play() -> None:
    say(script.read_bytes())
    if mode == "die":
        print("Segmentation fault (not really)", file=sys.stderr, flush=True)
        os._exit(3)
    for number in sys.argv[3:]:  # as somebody who presses Ctrl+C after the last of these records
        time.sleep(0.3)
        os.kill(os.getppid(), int(number))
    while mode in ("hang", "deaf") and not cancelled.wait(0.05):
        sample = CpuSample(worker_percent=1, other_percent=1, own_percent=1)
        say(channel.encode(Telemetry(time_ns=time.perf_counter_ns(), cpu=sample)))
    if mode == "hang":
        say(channel.encode(RunFinished(run_id="e1-a", outcome="cancelled", finished_unix_ns=time.time_ns())))
        say(channel.encode(ExperimentFinished(experiment_id="e1", outcome="cancelled")))


say(channel.encode(Hello(role="engine", pid=os.getpid(), gptscope_version="0")))
for header, _ in channel.read_frames(0):
    match channel.decode_command(header):
        case StartExperiment():
            threading.Thread(target=play, daemon=True).start()
        case Cancel() if mode == "hang":
            cancelled.set()
        case Shutdown() if mode != "deaf":
            say(channel.encode(Bye()))
            break
        case Cancel() | Shutdown():
            continue
        case _:
            play()
