"""A tiny prepared model, an output that collects, and a driver for real worker processes."""

import collections
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gptscope.models.config import PRESETS, GPTConfig
from gptscope.models.gpt import GPT, init_weights
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.prepare import PreparedModel, prepare
from gptscope.profiling import channel
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.processes import kill_tree, new_session_options
from gptscope.profiling.records import CommandDone, Failure, LoadVariant, Message
from gptscope.profiling.worker.output import Output

TINY = PRESETS["tiny"]
MACHINE = Machine(device="cpu", device_name="cpu", cores=1, memory_bytes=8 << 30)


class Letters:
    """A tokenizer whose tokens are the bytes of UTF-8 text, so that characters can be split."""

    eos_ids: tuple[int, ...] = ()

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode(errors="replace")


class Collected(Output):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        self._last_progress_s = 0.0
        self.run_id = None
        self.sent: list[tuple[Message, bytes]] = []

    def emit(self, record: Message, payload: bytes = b"") -> None:
        self.sent.append((record, payload))

    def of(self, kind: type[Any]) -> list[Any]:
        return [record for record, _ in self.sent if isinstance(record, kind)]


def prepared_model(
    *,
    workload: str = "decode",
    precision: str = "fp32",
    fusions: Sequence[str] = (),
    kv_cache: str = "dynamic",
    config: GPTConfig = TINY,
    batch: int = 1,
    machine: Machine = MACHINE,
    **levers: Any,
) -> PreparedModel:
    model = GPT(config).eval()
    init_weights(model, 5)
    context = LeverContext(
        machine=machine,
        config=config,
        workload=workload,
        precision=precision,
        fusions=frozenset(fusions),
        kv_cache=kv_cache,
        batch=batch,
        **levers,
    )
    return prepare(model, context, torch.device("cpu"))


class WorkerProcess:
    """A real worker, asked as the engine asks it."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gptscope.profiling.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            **new_session_options(),
        )
        self._frames = channel.read_frames(self.process.stdout.fileno())
        self.payloads: dict[str, bytes] = collections.defaultdict(bytes)
        self.hello = self._next()

    def _next(self) -> Message:
        header, payload = next(self._frames)
        record = channel.decode_record(header)
        self.payloads[type(record).__name__] += payload
        return record

    def ask(self, command: Message) -> list[Message]:
        self.process.stdin.write(channel.encode(command))
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> list[Message]:
        """All records until a command is done."""
        answers = []
        while not isinstance(record := self._next(), CommandDone):
            answers.append(record)
        return answers

    def failure(self, command: Message) -> Failure:
        failures = [record for record in self.ask(command) if isinstance(record, Failure)]
        assert len(failures) == 1
        return failures[0]

    def end(self) -> None:
        kill_tree(self.process.pid)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    """A process of the test's own."""
    process = WorkerProcess()
    yield process
    process.end()


@pytest.fixture(scope="module")
def shared_worker() -> Iterator[WorkerProcess]:
    """One process that several tests ask: it must not matter what it was asked before."""
    process = WorkerProcess()
    yield process
    process.end()


def load_command(model: str = "preset:tiny", variant: Variant | None = None, **work: Any) -> LoadVariant:
    experiment = Experiment(model=model, workload=Workload(**work), variants=(variant or Variant(threads=1),))
    return LoadVariant(run_id="r", experiment_id="e", experiment=experiment, variant_index=0)


@pytest.fixture
def kit() -> SimpleNamespace:
    """Makers for tests: `kit.prepared(...)`, `kit.collected()`, `kit.letters()`, `kit.load(...)`."""
    return SimpleNamespace(
        prepared=prepared_model,
        collected=Collected,
        letters=Letters,
        load=load_command,
        WorkerProcess=WorkerProcess,
        tiny=TINY,
        machine=MACHINE,
    )
