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
LeverGroup = Literal["precision", "fusion", "kv_cache", "pruning", "speculation"]
OptionValue = bool | int | float | str
EVERY_WORKLOAD: tuple[WorkloadKind, ...] = ("train", "prefill", "decode", "generate")
INFERENCE_WORKLOADS: tuple[WorkloadKind, ...] = ("prefill", "decode", "generate")


class LeverError(ValueError):
    """A lever that does not exist, or cannot be used here; the message says what exists, or why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeverOption:
    """One setting of a lever."""

    name: str
    title: str
    kind: Literal["choice", "whole", "number", "switch", "text", "file"]
    """`file`: a path on the machine that runs the model, or nothing."""
    default: OptionValue
    summary: str
    choices: tuple[str, ...] = ()
    """For `choice`: what can be given."""
    least: float | None = None
    most: float | None = None

    def checked(self, value: OptionValue) -> OptionValue:
        """The value in this option's type; text as it comes from a command line is read.

        Raises:
            ValueError: The value is impossible; the message says what can be given.
        """
        if self.kind == "choice":
            if value not in self.choices:
                raise ValueError(f"{self.name} is {value!r}, but it must be one of {', '.join(self.choices)}.")
            return value
        if self.kind in ("text", "file"):
            return str(value)
        if self.kind == "switch":
            return self._switch(value)
        return self._number(value)

    def _switch(self, value: OptionValue) -> bool:
        read = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
        found = value if isinstance(value, bool) else read.get(str(value).lower())
        if found is None:
            raise ValueError(f"{self.name} is {value!r}, but it must be on or off.")
        return found

    def _number(self, value: OptionValue) -> int | float:
        what = "a whole number" if self.kind == "whole" else "a number"
        try:
            number: int | float = int(str(value)) if self.kind == "whole" else float(str(value))
        except ValueError:
            raise ValueError(f"{self.name} is {value!r}, but it must be {what}.") from None
        if not (self.least is None or number >= self.least) or not (self.most is None or number <= self.most):
            limits = [f"{self.least:g} or more"] if self.least is not None else []
            limits += [f"{self.most:g} or less"] if self.most is not None else []
            raise ValueError(f"{self.name} is {value}, but it must be {' and '.join(limits)}.")
        if number != number:
            raise ValueError(f"{self.name} is not a number.")
        return number


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
    pruning: str = "none"
    speculation: str = "none"
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    """Lever name -> its option -> value; read them through `Lever.settings`."""
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
    input_shapes: str = ""
    """Sizes of the inputs, e.g. `1×576, 576×1536`; empty when they were not recorded."""


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
    options: tuple[LeverOption, ...] = ()


class Lever(ABC):
    """One thing a person can switch. Subclasses hold everything that is known about it."""

    name: ClassVar[str]
    group: ClassVar[LeverGroup]
    title: ClassVar[str]
    summary: ClassVar[str]
    """One or two sentences: what it does and when it helps."""
    workloads: ClassVar[tuple[WorkloadKind, ...]] = EVERY_WORKLOAD
    options: ClassVar[tuple[LeverOption, ...]] = ()
    """Settings that a person may change, in the order of forms."""

    def settings(self, context: LeverContext) -> dict[str, OptionValue]:
        """Every option of this lever with its value in this context: what was asked for, else the default.

        Raises:
            LeverError: An option that does not exist, or an impossible value.
        """
        return self.checked_options(context.options.get(self.name, {}))

    def checked_options(self, given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """All options with their values, `given` ones in place of the defaults.

        Raises:
            LeverError: An option that does not exist, or an impossible value.
        """
        known = {option.name: option for option in self.options}
        values = {name: option.default for name, option in known.items()}
        for name, value in given.items():
            if name not in known:
                has = f"It has: {', '.join(known)}." if known else "It has none."
                raise LeverError(f"{self.name} has no option {name!r}. {has}")
            try:
                values[name] = known[name].checked(value)
            except ValueError as error:
                raise LeverError(f"{self.name}: {error}") from error
        return values

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
            options=self.options,
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
