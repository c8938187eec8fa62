"""Small traces recorded by torch.profiler on this machine."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from gptscope.models.config import PRESETS
from gptscope.models.gpt import GPT, init_weights


def add_scopes(model: torch.nn.Module) -> None:
    """Record `module: PATH` around every module's forward pass, as the worker does."""
    open_scopes: list[record_function] = []

    def enter(name: str):
        def hook(*_: object) -> None:
            scope = record_function(f"module: {name}")
            scope.__enter__()
            open_scopes.append(scope)

        return hook

    for name, module in model.named_modules():
        if name:
            module.register_forward_pre_hook(enter(name))
            module.register_forward_hook(lambda *_: open_scopes.pop().__exit__(None, None, None))


def record(folder: Path, name: str, step, steps: int) -> SimpleNamespace:
    step()  # first calls allocate and dispatch differently
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        for number in range(steps):
            with record_function(f"ProfilerStep#{number}"):
                step()
    path = folder / f"{name}.json"
    recorded.export_chrome_trace(str(path))
    return SimpleNamespace(path=path, averages=recorded.key_averages(), steps=steps)


@pytest.fixture(scope="session")
def tiny_model() -> GPT:
    torch.manual_seed(0)
    model = GPT(PRESETS["tiny"])
    init_weights(model, 1)
    add_scopes(model)
    return model


@pytest.fixture(scope="session")
def prefill_trace(tiny_model: GPT, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Three forward passes over 2 x 16 tokens."""
    tokens = torch.randint(0, 512, (2, 16))

    @torch.inference_mode()
    def step() -> None:
        tiny_model(tokens)

    return record(tmp_path_factory.mktemp("traces"), "prefill", step, 3)


@pytest.fixture(scope="session")
def train_trace(tiny_model: GPT, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Two training steps over 2 x 16 tokens with fused AdamW."""
    tokens = torch.randint(0, 512, (2, 16))
    optimizer = torch.optim.AdamW(tiny_model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        logits = tiny_model(tokens)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return record(tmp_path_factory.mktemp("traces"), "train", step, 2)


@pytest.fixture
def write_trace(tmp_path: Path):
    """Write events (and other top-level entries) as a trace file."""
    import json

    def write(events: list[dict], **around: object) -> Path:
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({**around, "traceEvents": events}))
        return path

    return write
