"""What every lever (precision recipe, fusion, KV cache kind) is asked, and how it answers. No torch needed to read it.

A lever's whole knowledge lives in its own file: whether it is available here and why not, how it changes the model,
and what in a profile proves that it took effect.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gptscope.models.config import GPTConfig

WorkloadKind = Literal["train", "prefill", "decode", "generate"]
LeverGroup = Literal["precision", "fusion", "kv_cache"]
EVERY_WORKLOAD: tuple[WorkloadKind, ...] = ("train", "prefill", "decode", "generate")
INFERENCE_WORKLOADS: tuple[WorkloadKind, ...] = ("prefill", "decode", "generate")


class LeverError(ValueError):
    """A lever that does not exist, or cannot be used here; the message says what exists, or why not."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LeverDescription:
    """One lever as menus and forms show it, its availability already answered."""

    name: str
    group: LeverGroup
    title: str
    summary: str
    unavailable_reason: str | None
    warning: str | None
    workloads: tuple[WorkloadKind, ...]


class Lever(ABC):
    """One thing a person can switch. Subclasses hold everything that is known about it."""

    name: ClassVar[str]
    group: ClassVar[LeverGroup]
    title: ClassVar[str]
    summary: ClassVar[str]
    """One or two sentences: what it does and when it helps."""
    workloads: ClassVar[tuple[WorkloadKind, ...]] = EVERY_WORKLOAD

    def unavailable_reason(self, context: LeverContext) -> str | None:
        """Why this lever cannot be used in this context, as a sentence; None when it can."""
        if context.workload not in self.workloads:
            return f"{self.title} has no part in the workload {context.workload}, only in {', '.join(self.workloads)}."
        return self.machine_reason(context)

    def machine_reason(self, context: LeverContext) -> str | None:
        """What this machine, this model or the other levers forbid; asked only for the lever's own workloads."""
        del context
        return None

    def warning(self, context: LeverContext) -> str | None:
        """What a person should know before using it here, as a sentence; None when there is nothing."""
        del context
        return None

    @abstractmethod
    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        """Judge from a profile whether this lever took effect."""

    def describe(self, context: LeverContext) -> LeverDescription:
        """Answer all questions of a menu at once."""
        return LeverDescription(
            name=self.name,
            group=self.group,
            title=self.title,
            summary=self.summary,
            unavailable_reason=self.unavailable_reason(context),
            warning=self.warning(context),
            workloads=self.workloads,
        )

    def seen(self, in_effect: bool | None, sentence: str) -> Evidence:
        """This lever's evidence."""
        return Evidence(lever=self.name, in_effect=in_effect, sentence=sentence)

    def shown(self, sentence: str) -> Evidence:
        """The profile proves this lever."""
        return Evidence(lever=self.name, in_effect=True, sentence=sentence)

    def not_shown(self, sentence: str) -> Evidence:
        """The profile disproves this lever."""
        return Evidence(lever=self.name, in_effect=False, sentence=sentence)

    def cannot_tell(self, why: str) -> Evidence:
        """The profile can neither prove nor disprove this lever."""
        return Evidence(lever=self.name, in_effect=None, sentence=why)
