"""Tiny models of every family, and levers applied to them."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd.profiler import profile, record_function

from gptscope.models.calibration import CalibrationText
from gptscope.models.config import GPTConfig, RopeScaling
from gptscope.models.decoding.session import DecodeSession
from gptscope.models.gpt import GPT, init_weights
from gptscope.models.levers import Evidence, KernelFact, LeverContext, Machine, ProfileFacts
from gptscope.models.prepare import PreparedModel, prepare
from gptscope.models.training import TrainStep
from gptscope.profiling.trace import kernel_table, open_trace
from gptscope.profiling.worker.scopes import module_scopes

Judge = Callable[..., dict[str, Evidence]]

_LLAMA = GPTConfig(
    family="llama",
    vocab_size=97,
    context_length=64,
    n_layer=2,
    d_model=32,
    n_head=4,
    n_kv_head=2,
    d_head=8,
    d_ff=48,
    rotary_dim=8,
)
_GPT2 = replace(
    _LLAMA,
    family="gpt2",
    n_kv_head=4,
    norm="layernorm",
    position="learned",
    rotary_dim=0,
    mlp="gelu_tanh",
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
)
TINY = {
    "gpt2": _GPT2,
    "gpt_neox": replace(
        _GPT2,
        family="gpt_neox",
        position="rope",
        rotary_dim=4,
        mlp="gelu",
        parallel_residual=True,
        tie_embeddings=False,
    ),
    "llama": _LLAMA,
    "llama3": replace(_LLAMA, rope_scaling=RopeScaling(kind="llama3", factor=8.0, original_context=32)),
    "mistral": replace(_LLAMA, family="mistral", sliding_window=7, tie_embeddings=False),
    "qwen2": replace(_LLAMA, family="qwen2", qkv_bias=True),
    "qwen3": replace(_LLAMA, family="qwen3", qk_norm=True, d_head=16, rotary_dim=16),
}
"""One small configuration for each way in which the families differ."""


@pytest.fixture(params=list(TINY))
def family(request: pytest.FixtureRequest) -> str:
    """Each family in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def machine() -> Machine:
    """A CPU with everything that levers ask for."""
    return Machine(
        device="cpu",
        device_name="test",
        cores=1,
        memory_bytes=1 << 30,
        cpu_features=frozenset({"avx512_bf16", "avx512_fp16"}),
        compiler="/usr/bin/g++",
    )


@pytest.fixture(scope="session")
def tiny_model() -> Callable[[str], GPT]:
    """A fresh model of a family: random weights large enough that its logits differ, norms and biases included."""
    made: dict[str, GPT] = {}

    def make(name: str) -> GPT:
        if name not in made:
            model = GPT(TINY[name])
            init_weights(model, seed=1)
            generator = torch.Generator().manual_seed(2)
            with torch.no_grad():
                for path, parameter in model.named_parameters():
                    if path == "embed.weight":  # smaller than the rest, or a tied model only repeats its last token
                        parameter.mul_(2.0)
                    elif parameter.dim() == 1:
                        parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
                    else:
                        parameter.mul_(8.0)
            made[name] = model
        return copy.deepcopy(made[name])

    return make


@pytest.fixture(scope="session")
def prepared(machine: Machine, tiny_model: Callable[[str], GPT]) -> Callable[..., PreparedModel]:
    """`prepared("llama", "attention", "qkv", precision="bf16", kv_cache="static")`."""

    def make(name: str, *fusions: str, calibration: CalibrationText | None = None, **levers: Any) -> PreparedModel:
        model = tiny_model(name)
        settings: dict[str, Any] = {"workload": "decode", "precision": "fp32", "kv_cache": "dynamic"} | levers
        context = LeverContext(machine=machine, config=model.config, fusions=frozenset(fusions), **settings)
        return prepare(model, context, torch.device("cpu"), calibration)

    return make


@pytest.fixture
def pack_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the lever `packed_linear` pack tiny matrices too, with oneDNN, whatever is quicker here."""
    monkeypatch.setattr("gptscope.models.fusion.packed_linear.LEAST_VALUES", 0)
    monkeypatch.setattr("gptscope.models.fusion.packed_linear.quickest", lambda kernels, *_shape: kernels[0])


@pytest.fixture(scope="session")
def text_BL() -> torch.Tensor:  # noqa: N802  tensors carry their shape
    """Two sequences of 24 tokens, valid for every tiny model."""
    return torch.randint(0, 97, (2, 24), generator=torch.Generator().manual_seed(3))


@pytest.fixture
def judge(tmp_path: Path, text_BL: torch.Tensor) -> Judge:
    """Profile three steps of a prepared model's workload and ask its levers what they see."""

    def make(model: PreparedModel, *, modules: bool = True) -> dict[str, Evidence]:
        if model.context.training:
            train = TrainStep(model)
            run = lambda: train(text_BL)  # noqa: E731
        else:
            session = DecodeSession(model, 1, 40)
            session.prefill(text_BL[:1])
            run = session.step
        run()
        model.reset_counters()
        with module_scopes(model.model), profile(record_shapes=True) as recorded:
            for number in range(3):
                with record_function(f"ProfilerStep#{number}"):
                    run()
        recorded.export_chrome_trace(str(tmp_path / "trace.json"))
        rows = kernel_table(open_trace(tmp_path / "trace.json"))
        kernels = [
            KernelFact(
                name=row.name,
                calls=row.calls,
                self_time_us=row.self_time_us,
                module=row.module if modules else "",
                dtypes=row.dtypes,
                input_shapes=row.input_shapes if modules else "",
            )
            for row in rows
        ]
        facts = ProfileFacts(
            kernels=kernels,
            steps=3,
            n_layer=model.config.n_layer,
            workload=model.context.workload,
            device="cpu",
            counters=model.counters(),
        )
        return {one.lever: one for one in model.evidence(facts)}

    return make
