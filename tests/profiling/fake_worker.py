"""A worker without torch: does what its variant's name (or the asked model) says, to try the engine.

Words of that name: `crash:PHASE`, `segv:PHASE`, `exit:PHASE`, `hang:PHASE`, `fail:PHASE`, `usage:PHASE` with PHASE one
of load, peaks, warmup, slice, profile, evaluate, ask; `children` (starts compilers that sleep), `noisy`, `flood`,
`trace:MIB`, `slow` (0.15 s per command), `drifts` (says other tokens), `garbage`, `stuck` (ignores Leave), `dies_idle`
(soon after its warm-up). Phases are also `judge` and `map`.
"""

import os
import signal
import subprocess
import sys
import threading
import time

from gptscope.profiling.processes import end_with_parent, protect_stdout

frames = protect_stdout()
end_with_parent()

from gptscope.profiling import channel  # noqa: E402
from gptscope.profiling.records import (  # noqa: E402
    AskCapabilities,
    Bye,
    Capabilities,
    Command,
    CommandDone,
    EvaluateWindow,
    EvidenceReport,
    Failure,
    FetchModel,
    ForcedGaps,
    ForceTokens,
    GreedyPrompt,
    GreedyTokens,
    Hello,
    InspectModel,
    LayerErrors,
    Leave,
    LoadVariant,
    Logits,
    MachineInfo,
    MapLayers,
    MeasurePeaks,
    MemoryPeak,
    ModelFetched,
    ModelInfo,
    ModelInspected,
    ModelLoaded,
    Notice,
    Peaks,
    Profile,
    Progress,
    RecordProfile,
    RunSlice,
    RunStarted,
    SeedLosses,
    StepSamples,
    TraceChunk,
    TrainSeed,
    WarmUp,
)

WINDOWS, ROWS, VOCABULARY, PROMPTS = 3, 8, 16, 2
MODEL = ModelInfo(
    name="fake",
    source="preset",
    family="llama",
    n_layer=1,
    d_model=8,
    n_head=1,
    n_kv_head=1,
    d_head=8,
    d_ff=16,
    vocab_size=VOCABULARY,
    context_length=64,
    parameters=1000,
    weight_bytes=4000,
    kv_bytes_per_token=64.0,
    random_weights=False,
    has_tokenizer=True,
)
MACHINE = MachineInfo(
    hostname="fake",
    system="fake",
    cpu_name="fake",
    physical_cores=1,
    logical_cores=1,
    memory_bytes=1 << 30,
    cpu_features=(),
    device="cpu",
    device_name="fake",
    compiler=None,
)


class FakeWorker:
    def __init__(self) -> None:
        self.writer = channel.FrameWriter(frames)
        self.words: dict[str, str] = {}
        self.run_id = ""
        self.seed = 0

    def serve(self) -> None:
        self.writer.send(Hello(role="worker", pid=os.getpid(), gptscope_version="fake"))
        for header, _ in channel.read_frames(0):
            command = channel.decode_command(header)
            if isinstance(command, Leave):
                if "stuck" in self.words:
                    time.sleep(60)
                self.writer.send(Bye())
                return
            self.carry_out(command)
            self.writer.send(CommandDone(command=type(command).__name__))

    def carry_out(self, command: Command) -> None:
        match command:
            case LoadVariant():
                self.load(command)
            case MeasurePeaks():
                self.act("peaks")
                self.writer.send(
                    Peaks(
                        device="cpu",
                        device_name="fake",
                        threads=int(os.environ["OMP_NUM_THREADS"]),
                        read_gbps=10.0,
                        copy_gbps=10.0,
                        gemm_tflops={},
                        measured_unix_ns=0,
                        run_id=self.run_id or None,
                    )
                )
            case WarmUp():
                self.act("warmup")
                if "dies_idle" in self.words:
                    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()
                self.send_steps(-1, "warmup", 2)
            case RunSlice():
                self.act("slice")
                if "flood" in self.words:
                    for number in range(3000):
                        self.writer.send(Notice(message=f"flood {number}", run_id=self.run_id), bytes(2000))
                self.send_steps(command.slice, "measure", command.steps)
            case RecordProfile():
                self.profile(command.steps)
            case EvaluateWindow() | GreedyPrompt() | ForceTokens() | MapLayers():
                self.examine(command)
            case TrainSeed():
                self.act(f"seed-{command.number}")
                self.writer.send(SeedLosses(run_id=self.run_id, seed=command.seed, loss=(2.0, 1.0)))
            case _:
                self.answer(command)

    def examine(self, command: EvaluateWindow | GreedyPrompt | ForceTokens | MapLayers) -> None:
        match command:
            case EvaluateWindow():
                self.act("evaluate")
                self.evaluate(command.window)
            case GreedyPrompt():
                self.continue_prompt(command)
            case ForceTokens():
                self.act("judge")
                gaps = tuple(0.0 if token % 5 else 0.5 for token in command.token_ids)
                self.writer.send(ForcedGaps(prompt=command.prompt, gaps=gaps))
            case MapLayers():
                self.act("map")
                self.writer.send(self.layer_map(command.baseline_run_id))

    def answer(self, command: Command) -> None:
        match command:
            case AskCapabilities():
                self.act("ask")
                self.writer.send(Capabilities(machine=MACHINE, levers=(), versions={}))
            case InspectModel():
                self.words = parse(command.model)
                self.act("ask")
                self.writer.send(ModelInspected(model=MODEL, estimated_bytes={"decode": 1}))
            case FetchModel():
                self.words = parse(command.model)
                self.act("ask")
                self.writer.send(Progress(phase="fetch", done=1, total=2, unit="bytes"))
                self.writer.send(ModelFetched(model=command.model, path="/tmp", bytes=2))
            case _:
                raise AssertionError(f"no command for a worker: {command}")

    def continue_prompt(self, command: GreedyPrompt) -> None:
        ids = tuple(range(command.new_tokens))
        if "drifts" in self.words:
            ids = (*ids[:10], *(token + 1 for token in ids[10:]))
        margins, texts = (1.0,) * len(ids), ("x",) * len(ids)
        self.writer.send(
            GreedyTokens(prompt=command.prompt, prompts=PROMPTS, token_ids=ids, margins=margins, texts=texts)
        )

    def layer_map(self, baseline_run_id: str) -> LayerErrors:
        return LayerErrors(
            run_id=self.run_id,
            baseline_run_id=baseline_run_id,
            modules=(),
            stream_sqnr_db=(),
            tokens=64,
            timed_tokens=1,
            kl_all=0.1,
            reference="fake",
        )

    def load(self, command: LoadVariant) -> None:
        variant = command.experiment.variants[command.variant_index]
        self.words, self.run_id, self.seed = parse(variant.name), command.run_id, command.variant_index
        self.writer.send(
            RunStarted(
                run_id=self.run_id,
                experiment_id=command.experiment_id,
                variant=variant,
                name=variant.name,
                workload=command.experiment.workload,
                model=command.experiment.model,
                command="gptscope run",
                started_unix_ns=time.time_ns(),
                machine=MACHINE,
                versions={},
                environment={"OMP_NUM_THREADS": os.environ["OMP_NUM_THREADS"]},
                threads=1,
                seed=1,
            )
        )
        if "noisy" in self.words:
            os.write(1, b"GSF1 printed by a library to fd 1\n" * 100)
            print("printed by Python")
        if "garbage" in self.words:
            frames.write(b"bytes between frames, GSF1\xff\xff\xff\xff too")
            frames.flush()
        if "children" in self.words:
            subprocess.Popen(["sleep", "321"])
            subprocess.Popen(["sh", "-c", "sleep 321 & sleep 321"])
        self.act("load")
        self.writer.send(ModelLoaded(run_id=self.run_id, model=MODEL, fusions=(), skipped={}, load_s=0.1, start_s=0.1))

    def act(self, phase: str) -> None:
        """Do to this phase what the words say."""
        if "slow" in self.words:
            time.sleep(0.15)
        if self.words.get("fail") == phase:
            self.writer.send(Failure(kind="model", message=f"It fails at {phase}.", run_id=self.run_id or None))
        if self.words.get("usage") == phase:
            self.writer.send(Failure(kind="usage", message="It makes no sense.", run_id=self.run_id or None))
        if self.words.get("memory") == phase:
            self.writer.send(Failure(kind="memory", message="It does not fit.", run_id=self.run_id or None))
        if self.words.get("crash") == phase:
            print("USDT: noise of the profiler", file=sys.stderr)
            print(f"last words at {phase}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.words.get("segv") == phase:
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.words.get("exit") == phase:
            os._exit(3)
        if self.words.get("hang") == phase:
            time.sleep(600)

    def send_steps(self, number: int, phase: str, steps: int) -> None:
        starts, durations = [], []
        for _ in range(steps):
            starts.append(time.perf_counter_ns())
            time.sleep(0.002)
            durations.append(time.perf_counter_ns() - starts[-1])
        self.writer.send(
            StepSamples(
                run_id=self.run_id,
                slice=number,
                phase=phase,
                kind="decode",
                start_ns=tuple(starts),
                duration_ns=tuple(durations),
                tokens=(1,) * steps,
            )
        )
        self.writer.send(MemoryPeak(run_id=self.run_id, process_bytes=1 << 20))

    def profile(self, steps: int) -> None:
        self.act("profile")
        self.writer.send(
            Profile(run_id=self.run_id, steps=steps, overhead=1.1, wall_us=1, busy_us=1, kernels=(), device="cpu")
        )
        self.writer.send(EvidenceReport(run_id=self.run_id, items=()))
        mebibytes = int(self.words.get("trace", "1"))
        for number in range(mebibytes):
            last = number == mebibytes - 1
            self.writer.send(TraceChunk(run_id=self.run_id, offset=number << 20, last=last), bytes(1 << 20))

    def evaluate(self, window: int) -> None:
        import numpy as np

        rng = np.random.default_rng(window)
        logits_RV = rng.normal(size=(ROWS, VOCABULARY)) * 3
        logits_RV += self.seed * 0.01 * rng.normal(size=(ROWS, VOCABULARY))
        for start in range(0, ROWS, ROWS // 2):
            rows = logits_RV[start : start + ROWS // 2].astype("<f4")
            self.writer.send(
                Logits(
                    window=window,
                    windows=WINDOWS,
                    vocab_size=VOCABULARY,
                    targets=tuple(range(len(rows))),
                    offset_row=start,
                ),
                rows.tobytes(),
            )


def parse(name: str) -> dict[str, str]:
    return {word.partition(":")[0]: word.partition(":")[2] for word in name.split()}


if __name__ == "__main__":
    FakeWorker().serve()
