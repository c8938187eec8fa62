"""Checks what was asked against model and machine before anything is loaded: clear sentences instead of deep errors."""

import os
from collections.abc import Mapping

import torch

from gptscope.models.compression import PRUNINGS
from gptscope.models.config import GPTConfig
from gptscope.models.decoding.speculation import SPECULATIONS
from gptscope.models.fusion import FUSIONS
from gptscope.models.kv_cache import KV_CACHES
from gptscope.models.levers import Lever, LeverContext, LeverError, Machine
from gptscope.models.loaders import describe_model
from gptscope.models.precision import RECIPES
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.machine import facts
from gptscope.profiling.records import MachineInfo
from gptscope.profiling.worker.estimate import LeverSizes, MemoryEstimate, estimate_memory
from gptscope.profiling.worker.failures import NotEnoughMemoryError, RequestError

MOST_BATCH = 1 << 20


def choose_device(wanted: str) -> torch.device:
    """Where to run.

    Raises:
        RequestError: CUDA is asked for and cannot be used.
    """
    if wanted == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if wanted == "auto":
        return torch.device("cpu")
    if torch.version.cuda is None:
        raise RequestError(
            f"The device cuda cannot be used: this torch ({torch.__version__}) was built without CUDA. Install a CUDA "
            "build of torch, or use the device cpu."
        )
    gpu = facts.find_gpu()
    why = gpu if isinstance(gpu, str) else f"torch cannot use {gpu.name} (driver {gpu.driver})."
    raise RequestError(f"The device cuda cannot be used: {why} Use the device cpu.")


def choose_threads(variant: Variant) -> int:
    """Threads for kernels: the variant's, else what OMP_NUM_THREADS says, else one per physical core.

    Raises:
        RequestError: Fewer than one thread.
    """
    if variant.threads is not None:
        if variant.threads < 1:
            raise RequestError(f"threads is {variant.threads}, but it must be 1 or more.")
        return variant.threads
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(wanted) if wanted.isdigit() and int(wanted) > 0 else facts.physical_cores()


def to_lever_machine(info: MachineInfo) -> Machine:
    """The facts that levers ask for."""
    return Machine(
        device=info.device,
        device_name=info.device_name,
        cores=info.physical_cores,
        memory_bytes=info.memory_bytes,
        cpu_features=frozenset(info.cpu_features),
        compiler=info.compiler,
        compute_capability=info.compute_capability,
    )


def lever_context(variant: Variant, work: Workload, config: GPTConfig, machine: MachineInfo) -> LeverContext:
    """What a variant asks of the levers, its fusions apart, which are to be resolved by this."""
    return LeverContext(
        machine=to_lever_machine(machine),
        config=config,
        workload=work.kind,
        precision=variant.precision,
        kv_cache=variant.kv_cache,
        pruning=variant.pruning,
        speculation=variant.speculation,
        options=variant.options,
        batch=work.batch,
    )


def check_levers(context: LeverContext) -> None:
    """See that all levers but fusions exist and are available here, and that every option is possible.

    Raises:
        LeverError: One is not; the message says why and what exists.
    """
    _check_lever(RECIPES, context.precision, "precision", context)
    if not context.training:
        _check_lever(KV_CACHES, context.kv_cache, "KV cache", context)
    if context.pruning != "none":
        _check_lever(PRUNINGS, context.pruning, "pruning", context)
    if context.speculation != "none":
        _check_lever(SPECULATIONS, context.speculation, "speculation", context)
    registries: tuple[Mapping[str, Lever], ...] = (RECIPES, KV_CACHES, FUSIONS, PRUNINGS, SPECULATIONS)
    levers = {name: lever for registry in registries for name, lever in registry.items()}
    for name, given in context.options.items():
        if name not in levers:
            raise LeverError(f"There is no lever called {name!r}, so it has no options. Levers: {', '.join(levers)}.")
        levers[name].checked_options(given)


def _check_lever(registry: Mapping[str, Lever], name: str, what: str, context: LeverContext) -> None:
    if name not in registry:
        raise LeverError(f"There is no {what} called {name!r}. What exists: {', '.join(registry) or 'none'}.")
    reason = registry[name].unavailable_reason(context)
    if reason is not None:
        raise LeverError(f"The {what} {name} cannot be used here: {reason}")


def check_sizes(work: Workload, prompt_tokens: int | None, config: GPTConfig, model: str) -> None:
    """See that the tokens fit into the model's context.

    Args:
        work: What was asked.
        prompt_tokens: Tokens of the person's prompt; None when there is none.
        config: The model's shape.
        model: Its name, for the message.

    Raises:
        RequestError: They do not; the message has the numbers.
    """
    limit = config.context_length
    if work.batch > MOST_BATCH:
        raise RequestError(f"batch is {work.batch}, but more than {MOST_BATCH} sequences at once make no sense.")
    if work.kind in ("train", "prefill"):
        if work.context > limit:
            raise RequestError(
                f"context is {work.context} tokens, but {model} reads at most {limit}. Take {limit} or less."
            )
        return
    first = work.context if prompt_tokens is None else prompt_tokens
    if first + work.new_tokens <= limit:
        return
    what = f"context {first}" if prompt_tokens is None else f"the prompt's {first} tokens"
    room = limit - first
    shorter = "a shorter context" if prompt_tokens is None else "a shorter prompt"
    advice = f"Take {room} new tokens or less, or {shorter}." if room >= 1 else f"Take {shorter}."
    raise RequestError(
        f"{what} and {work.new_tokens} new tokens are {first + work.new_tokens} tokens together, but {model} reads at "
        f"most {limit}. {advice}"
    )


def check_memory(
    config: GPTConfig, work: Workload, context: LeverContext, device: torch.device, model: str
) -> MemoryEstimate:
    """Estimate the memory that a variant needs and compare it with what is free.

    Raises:
        NotEnoughMemoryError: It is more than is free; the message has the numbers.
    """
    needed = estimate_memory(config, work, lever_sizes(context))
    if device.type == "cuda":
        _compare(model, needed.total - needed.base, needed, *free_memory(device))
        # The loader reads the weights into the computer's memory first.
        _compare(model, needed.weights + needed.base, needed, *free_memory(torch.device("cpu")))
    else:
        _compare(model, needed.total, needed, *free_memory(device))
    return needed


def _compare(model: str, needed_bytes: int, estimate: MemoryEstimate, free_bytes: int, where: str) -> None:
    if needed_bytes > free_bytes:
        raise NotEnoughMemoryError(
            f"{model} needs about {needed_bytes / 1e9:.1f} GB for this run ({estimate.sentence()}), but only "
            f"{free_bytes / 1e9:.1f} GB of {where} are free. Use a smaller model, batch or context, a 16-bit "
            "precision, or close other programs."
        )


def lever_sizes(context: LeverContext) -> LeverSizes:
    """What the levers of a context change about memory."""
    recipe, kv_cache = RECIPES[context.precision], "none" if context.training else context.kv_cache
    activation = recipe.activation_bytes(context)
    source = None if context.speculation == "none" else SPECULATIONS[context.speculation].draft_source(context)
    kv_bytes = None if context.config is None else KV_CACHES[kv_cache].value_bytes(context.config, activation)
    return LeverSizes(
        bytes_per_value=recipe.preparing_bytes or recipe.bytes_per_value,
        fused_attention="attention" in context.fusions,
        kv_cache=kv_cache,
        activation_bytes=activation,
        kv_bytes=kv_bytes,
        draft=None if source is None else describe_model(source).config,
    )


def free_memory(device: torch.device) -> tuple[int, str]:
    """Bytes that can still be taken on a device, and how to call them."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]), "GPU memory"
    return facts.memory_available_bytes(), "memory"
