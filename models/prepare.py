"""From a loaded model and a choice of levers to something that runs: casts, moves, swaps modules, wraps compile."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from gptscope.models.calibration import CalibrationText
from gptscope.models.compression import PRUNINGS
from gptscope.models.config import GPTConfig
from gptscope.models.counting import counted, reset_counts
from gptscope.models.decoding.speculation import SPECULATIONS
from gptscope.models.fusion import FUSIONS
from gptscope.models.fusion.compile import CompileWatch
from gptscope.models.fusion.kernel_choice import choose_row_kernels
from gptscope.models.fusion.optimizer import make_adamw
from gptscope.models.gpt import GPT
from gptscope.models.kv_cache import KV_CACHES, AnyCache
from gptscope.models.levers import (
    Evidence,
    Lever,
    LeverContext,
    LeverDescription,
    LeverError,
    Machine,
    ProfileFacts,
    WorkloadKind,
)
from gptscope.models.precision import RECIPES
from gptscope.models.quantization.layers import Int8Embedding

LeverT = TypeVar("LeverT", bound=Lever)

__all__ = ["LeverDescription", "LeverError", "PreparedModel", "list_levers", "prepare", "resolve_fusions"]


def list_levers(machine: Machine, config: GPTConfig | None, workload: WorkloadKind) -> list[LeverDescription]:
    """Every lever with its availability on this machine, for this model (None: any) and this workload."""
    context = LeverContext(machine=machine, config=config, workload=workload, precision="fp32")
    registries: tuple[Mapping[str, Lever], ...] = (RECIPES, KV_CACHES, FUSIONS, PRUNINGS, SPECULATIONS)
    levers = [lever for registry in registries for lever in registry.values()]
    return [lever.describe(context) for lever in levers]


def resolve_fusions(requested: Sequence[str], context: LeverContext) -> tuple[tuple[str, ...], dict[str, str]]:
    """Turn what a person asked for into the fusions to apply.

    Args:
        requested: Fusion names; `all` stands for every one that is available here except `compile`, `none` for none.
        context: Machine, model, workload and precision; its own `fusions` are ignored.

    Returns:
        The fusions to apply in order of application, and those that `all` leaves out with the reason of each.

    Raises:
        LeverError: A name that does not exist, or one asked for by name that is not available here.
    """
    unknown = [name for name in requested if name not in FUSIONS and name not in ("all", "none")]
    if unknown:
        raise LeverError(
            f"There is no fusion called {', '.join(map(repr, unknown))}. Fusions: {', '.join(FUSIONS)}; or all, none."
        )
    if "none" in requested and len(set(requested)) > 1:
        raise LeverError("none cannot be combined with other fusions; leave it out, or give only none.")
    named = {name for name in requested if name in FUSIONS}
    wanted = named | ({name for name, fusion in FUSIONS.items() if fusion.part_of_all} if "all" in requested else set())
    question = replace(context, fusions=frozenset(wanted))
    chosen, skipped = [], {}
    for name, fusion in FUSIONS.items():
        if name not in wanted:
            continue
        reason = fusion.unavailable_reason(question)
        if reason is None:
            chosen.append(name)
        elif name in named:
            raise LeverError(f"The fusion {name} cannot be used here: {reason}")
        else:
            skipped[name] = reason
    return tuple(chosen), skipped


@dataclass
class PreparedModel:
    """A model with its levers applied, ready to run."""

    model: GPT
    context: LeverContext
    device: torch.device
    forward: Callable[..., Tensor]
    """`GPT.forward`, compiled when that lever is on. Run it inside `autocast()`."""
    warnings: tuple[str, ...]
    watch: CompileWatch | None = None
    """Set when the lever `compile` is on."""
    cache_value_bytes: float = 0.0
    """Bytes of one value in the buffers of the latest KV cache; 0 where they are allocated later."""
    tally: dict[str, float] = field(default_factory=dict)
    """What decoding sessions count, summed since `reset_counters`."""
    draft: "PreparedModel | None" = None
    """The smaller model that guesses for this one, when the lever `speculation` needs one."""

    @property
    def config(self) -> GPTConfig:
        """The model's shape."""
        return self.model.config

    @property
    def dtype(self) -> torch.dtype:
        """Type of activations, and of the KV cache."""
        return RECIPES[self.context.precision].compute_dtype(self.context)

    @property
    def compile_s(self) -> float:
        """Seconds spent compiling so far; compilation happens in the first calls."""
        return 0.0 if self.watch is None else self.watch.since()[0]

    @property
    def graph_breaks(self) -> int:
        """Places so far where Python had to interrupt a compiled region."""
        return 0 if self.watch is None else self.watch.since()[1]

    @property
    def regions(self) -> int:
        """Pieces of code compiled so far; layers of the same shape share one."""
        return 0 if self.watch is None else self.watch.since()[2]

    @property
    def weight_bytes(self) -> int:
        """Bytes that the weights occupy in memory: shared ones once, packed copies included."""
        return weight_bytes(self.model)

    @property
    def read_weight_bytes(self) -> int:
        """Bytes of the weights that every forward pass reads: look-up tables and unused copies left out."""
        return read_weight_bytes(self.model)

    @property
    def activation_bytes(self) -> float:
        """Bytes of one activation."""
        return RECIPES[self.context.precision].activation_bytes(self.context)

    @property
    def kv_value_bytes(self) -> float:
        """Bytes of one feature of a key or value in the KV cache."""
        return KV_CACHES[self.context.kv_cache].value_bytes(self.config, self.activation_bytes)

    def autocast(self) -> AbstractContextManager[object]:
        """Context in which a forward pass must run."""
        return RECIPES[self.context.precision].autocast(self.device, training=self.context.training)

    def logits(self, tokens_BL: Tensor) -> Tensor:
        """Logits `[B, L, V]` of a whole text in the model's type, without gradients and without a cache."""
        with torch.inference_mode(), self.autocast():
            return self.forward(tokens_BL.to(self.device))

    def new_cache(self, batch: int, capacity: int) -> AnyCache | None:
        """A fresh cache of the kind in the context; None for the kind `none`."""
        cache = KV_CACHES[self.context.kv_cache].make(self.config, batch, capacity, self.dtype, self.device)
        if cache is not None:
            values = self.config.kv_bytes_per_token(1.0) * batch * (capacity + 1)
            self.cache_value_bytes = cache.storage_bytes / values
        return cache

    def make_optimizer(self, lr: float) -> torch.optim.AdamW:
        """AdamW over the parameters, in the form that the lever `optimizer` says."""
        return make_adamw(self.model, lr, fused="optimizer" in self.context.fusions)

    def grad_scaler(self) -> torch.amp.GradScaler:
        """Loss scaler; does nothing unless the precision needs it (FP16)."""
        return torch.amp.GradScaler(self.device.type, enabled=RECIPES[self.context.precision].needs_loss_scaling())

    def counters(self) -> dict[str, float]:
        """What was counted outside the profiler since `reset_counters`, for `ProfileFacts.counters`."""
        counters = {"compiled_regions": float(self.regions), "graph_breaks": float(self.graph_breaks)}
        forwards = self.tally.get("decode_forwards", 0.0)
        if forwards:
            counters["decode_forwards"] = forwards
            counters["tokens_per_forward"] = self.tally["decode_tokens"] / forwards
            counters["kv_cache_allocations_per_step"] = self.tally["cache_allocations"] / forwards
            counters["kv_cache_bytes"] = self.tally["cache_bytes"]
            counters["kv_cache_value_bytes"] = self.cache_value_bytes
            counters["drafted_tokens"] = self.tally.get("drafted_tokens", 0.0)
            counters["accepted_tokens"] = self.tally.get("accepted_tokens", 0.0)
        if self.context.pruning != "none":
            counters |= PRUNINGS[self.context.pruning].counters(self.model)
        return counters | counted(self.model)

    def reset_counters(self) -> None:
        """Start counting anew, e.g. right before a profiled run."""
        self.tally.clear()
        reset_counts(self.model)

    def evidence(self, facts: ProfileFacts) -> list[Evidence]:
        """What the profile says about every lever that is on: precision, each fusion, and the KV cache if used."""
        levers: list[Lever] = [RECIPES[self.context.precision]]
        levers += [FUSIONS[name] for name in FUSIONS if name in self.context.fusions]
        if self.context.workload in ("decode", "generate"):
            levers.append(KV_CACHES[self.context.kv_cache])
        if self.context.pruning != "none":
            levers.append(PRUNINGS[self.context.pruning])
        if self.context.speculation != "none":
            levers.append(SPECULATIONS[self.context.speculation])
        return [lever.evidence(facts, self.context) for lever in levers]


def prepare(
    model: GPT,
    context: LeverContext,
    device: torch.device,
    calibration: CalibrationText | None = None,
    draft: GPT | None = None,
) -> PreparedModel:
    """Apply the levers of `context` to `model`, in place.

    In this order: cast, prune, fuse, quantize (it sees the layers that will run), compile.

    Args:
        model: A model as its loader gives it.
        context: The levers; `fusions` must be resolved (`resolve_fusions`).
        device: Where to run.
        calibration: Text for recipes that need to see some (`PrecisionRecipe.needs_calibration`).
        draft: The smaller model that guesses (`Speculation.draft_source`); its weights have the recipe's type.

    Raises:
        LeverError: A lever that does not exist or is not available here, or an option that is impossible.
    """
    recipe = _choose(RECIPES, context.precision, "precision", context)
    cache = _choose(KV_CACHES, context.kv_cache, "KV cache", context if not context.training else None)
    fusions = [_choose(FUSIONS, name, "fusion", context) for name in FUSIONS if name in context.fusions]
    for name in context.fusions - FUSIONS.keys():
        _choose(FUSIONS, name, "fusion", context)
    levers: list[Lever] = [recipe, cache, *fusions]
    model.to(device)
    recipe.apply(model, training=context.training)
    model.train(context.training).requires_grad_(context.training)
    if context.pruning != "none":
        pruning = _choose(PRUNINGS, context.pruning, "pruning", context)
        pruning.apply(model, context)
        levers.append(pruning)
    if context.speculation != "none":
        levers.append(_choose(SPECULATIONS, context.speculation, "speculation", context))
    watch = CompileWatch() if "compile" in context.fusions else None
    for fusion in fusions:
        if fusion.name != "compile":
            fusion.apply(model, context)
    recipe.quantize(model, context, calibration)
    if "compile" in context.fusions:
        FUSIONS["compile"].apply(model, context)
    if not context.training:
        choose_row_kernels(model)
    warnings = [warning for lever in levers if (warning := lever.warning(context))]
    return PreparedModel(
        model=model,
        context=context,
        device=device,
        forward=model,
        warnings=tuple(warnings),
        watch=watch,
        draft=None if draft is None else prepare(draft, _draft_context(draft, context), device, calibration),
    )


def _draft_context(draft: GPT, context: LeverContext) -> LeverContext:
    """Levers of a smaller model that guesses: those of the model it guesses for, but neither pruned nor compiled."""
    fusions = context.fusions - {"compile"}
    return replace(context, config=draft.config, fusions=fusions, pruning="none", speculation="none")


def _choose(registry: dict[str, LeverT], name: str, what: str, context: LeverContext | None) -> LeverT:
    if name not in registry:
        raise LeverError(f"There is no {what} called {name!r}. What exists: {', '.join(registry)}.")
    lever = registry[name]
    if context is not None:
        lever.settings(context)
    reason = None if context is None else lever.unavailable_reason(context)
    if reason is not None:
        raise LeverError(f"The {what} {name} cannot be used here: {reason}")
    return lever


def weight_bytes(model: nn.Module) -> int:
    """Bytes of parameters, buffers and packed weights; storage that is shared (tied embeddings) counts once."""
    seen: dict[int, int] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    packed = sum(getattr(module, "packed_bytes", 0) for module in model.modules())
    return sum(seen.values()) + packed


def read_weight_bytes(model: nn.Module) -> int:
    """Bytes of weights that a forward pass reads as a whole: no look-up tables, and of two copies only the packed."""
    seen: dict[int, int] = {}
    packed = 0
    for module in model.modules():
        if isinstance(module, nn.Embedding | Int8Embedding):
            continue
        packed += (own := getattr(module, "packed_bytes", 0))
        for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            if not own or tensor.dim() < 2:  # a layer with a packed copy does not read its plain matrix
                seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    return sum(seen.values()) + packed
