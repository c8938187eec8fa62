"""What every lever (precision recipe, fusion, KV cache kind) is asked, and how it answers. No torch needed to read it.

A lever's whole knowledge lives in its own file: whether it is available here and why not, how it changes the model,
and what in a profile proves that it took effect.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gptscope.models.config import GPTConfig

WorkloadKind = Literal["train", "prefill", "decode", "generate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The facts about this computer that decide whether a lever is available."""

    device: Literal["cpu", "cuda"]
    device_name: str
    cores: int
    memory_bytes: int
    cpu_features: frozenset[str] = frozenset()
    """Lower-case instruction set names as the system lists them, e.g. `avx512_bf16`, `amx_bf16`, `avx512_fp16`."""
    compiler: str | None = None
    """Path of a working C++ compiler, None when there is none."""
    compute_capability: tuple[int, int] | None = None
    """CUDA compute capability, e.g. (9, 0); None without an NVIDIA GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeverContext:
    """One question to a lever: this machine, this model, this workload, and the other levers."""

    machine: Machine
    config: GPTConfig | None
    """None while no model is chosen: answer for models in general."""
    workload: WorkloadKind
    precision: str
    fusions: frozenset[str] = frozenset()
    kv_cache: str = "dynamic"
    batch: int = 1

    @property
    def training(self) -> bool:
        """True when gradients are needed."""
        return self.workload == "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFact:
    """One row of a profile, reduced to what evidence needs."""

    name: str
    calls: int
    self_time_us: float
    module: str = ""
    """Module path such as `blocks.0.attn.qkv.q`; empty when unknown."""
    dtypes: tuple[str, ...] = ()
    """Input types as the profiler names them, e.g. `float`, `c10::BFloat16`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFacts:
    """What a profiled run shows, handed to `Lever.evidence`."""

    kernels: Sequence[KernelFact]
    steps: int
    n_layer: int
    workload: WorkloadKind
    device: Literal["cpu", "cuda"]
    counters: Mapping[str, float] = field(default_factory=dict)
    """What the worker counted itself, e.g. `tokens_per_forward`, `kv_cache_bytes`, `compiled_regions`."""

    def calls_per_step(self, matches: Callable[[KernelFact], bool]) -> float:
        """Calls of all matching kernels, divided by the profiled steps."""
        return sum(kernel.calls for kernel in self.kernels if matches(kernel)) / max(self.steps, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Whether a lever shows in the profile, with the sentence a person reads."""

    lever: str
    in_effect: bool | None
    """None: the profile cannot tell (say why in the sentence)."""
    sentence: str
