"""From named tensors in files to a filled `GPT`, one tensor at a time."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gptscope.models.config import GPTConfig
from gptscope.models.gpt import GPT
from gptscope.models.loaders.base import LoadRequest, ModelError

_ALIGNMENT_BYTES = 64
"""What torch's allocator gives: a cache line, and a full AVX-512 register."""

Pick = Callable[[Tensor], Tensor]
"""Takes what one of our parameters needs out of a stored tensor; a view is enough."""


def whole(tensor: Tensor) -> Tensor:
    """The stored tensor as it is."""
    return tensor


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a file: its name there, the shape the config demands, and which parameters it becomes."""

    name: str
    shape: tuple[int, ...]
    parts: tuple[tuple[str, Pick], ...]


def same(name: str, shape: tuple[int, ...], ours: str) -> Stored:
    """A stored tensor that is one of our parameters unchanged."""
    return Stored(name, shape, ((ours, whole),))


class Weights(Protocol):
    """The tensors of a model's files. Opening reads headers only."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Name -> shape of every tensor."""

    @property
    def format(self) -> str:
        """Types the weights are stored in, most bytes first, e.g. `BF16`."""

    def file_of(self, name: str) -> str:
        """File that holds a tensor, for messages."""

    def label(self, name: str) -> str:
        """The tensor's name in the file, for messages; also for one that is missing."""

    def read(self, name: str) -> Tensor:
        """Values of one tensor, floating point, on the CPU.

        Raises:
            ModelError: The values cannot be read or are of a type that is no weight.
        """


def build_model(
    config: GPTConfig,
    plan: Iterable[Stored],
    weights: Weights,
    request: LoadRequest,
    *,
    where: str,
    ignorable: Callable[[str], bool] = lambda _name: False,
) -> tuple[GPT, tuple[str, ...]]:
    """Build the decoder around the stored tensors, without ever holding a second copy of the model.

    Args:
        config: Sizes; every stored shape is checked against them before memory is taken.
        plan: What to take from the files. May be lazy: it is abandoned at the first missing tensor.
        weights: The files.
        request: Wanted type and whom to tell.
        where: Folder or file, for messages.
        ignorable: Stored tensors that carry no weights (masks, rotary tables), left out without a note.

    Returns:
        The model in evaluation mode, and notes on tensors that were not used.

    Raises:
        ModelError: A tensor is missing or has another shape than the config demands.
    """
    wanted = check_plan(plan, weights, where)
    state: dict[str, Tensor] = {}
    with one_thread():
        for done, stored in enumerate(wanted):
            request.progress(done, len(wanted), "tensors", weights.label(stored.name))
            tensor = weights.read(stored.name)
            for ours, pick in stored.parts:
                state[ours] = own(pick(tensor), request.dtype)
    model = assemble(config, state)
    request.progress(len(wanted), len(wanted), "tensors", "")
    return model, unused_note({stored.name for stored in wanted}, weights.shapes, ignorable)


def check_plan(plan: Iterable[Stored], weights: Weights, where: str) -> list[Stored]:
    """Check names and shapes against the headers, before any memory is taken."""
    shapes = weights.shapes
    wanted = []
    for stored in plan:
        found = shapes.get(stored.name)
        if found is None:
            raise ModelError(
                f"{where}: the tensor {weights.label(stored.name)} is missing among the {len(shapes)} stored ones. "
                "The weights are incomplete or belong to another config; fetch them again."
            )
        if tuple(found) != stored.shape:
            raise ModelError(
                f"{weights.file_of(stored.name)}: the tensor {weights.label(stored.name)} has shape {list(found)}, "
                f"but the config demands {list(stored.shape)}. Weights and config belong to different models."
            )
        wanted.append(stored)
    return wanted


def own(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The values in aligned memory of their own, contiguous, in `dtype`; copied only when that is not so already."""
    exclusive = tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes
    if exclusive and tensor.dtype == dtype and tensor.data_ptr() % _ALIGNMENT_BYTES == 0:
        return tensor
    return torch.empty(tensor.shape, dtype=dtype).copy_(tensor)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch copy on the calling thread alone.

    Copying is bound by memory, not by cores; and the workers of an experiment load side by side, where threads that
    wait for each other made loading ten times slower.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def assemble(config: GPTConfig, state: dict[str, Tensor]) -> GPT:
    """Put tensors that are already in memory into a decoder that never had weights of its own."""
    model = empty_model(config)
    if config.tie_embeddings:
        state = {**state, "lm_head.weight": state["embed.weight"]}
    model.load_state_dict(state, assign=True)
    if config.tie_embeddings:  # assigning separated the two
        model.lm_head.weight = model.embed.weight
    return model.eval()


class _SkipInit(TorchFunctionMode):
    """Makes `torch.nn.init` do nothing: random numbers on the meta device cost a second of imports in torch."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


def empty_model(config: GPTConfig) -> GPT:
    """A decoder on the meta device: sizes without memory."""
    with torch.device("meta"), _SkipInit():
        model = GPT(config)
    assert not list(model.buffers()), "buffers would have to be filled by the loaders too"
    return model


def unused_note(used: Collection[str], stored: Collection[str], ignorable: Callable[[str], bool]) -> tuple[str, ...]:
    """One sentence on stored tensors that the decoder has no place for; nothing when there are none."""
    extra = sorted(name for name in stored if name not in used and not ignorable(name))
    if not extra:
        return ()
    named = ", ".join(extra[:3]) + (", ..." if len(extra) > 3 else "")
    return (f"{len(extra)} stored tensors are not part of this architecture and were not used: {named}.",)
