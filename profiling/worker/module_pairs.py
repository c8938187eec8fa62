"""The modules of two copies of a model that can stand in for each other, and how long each takes."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gptscope.models.gpt import GPT, Mask, Rope, make_mask, make_rope
from gptscope.models.prepare import PreparedModel
from gptscope.models.quantization.names import set_module

ROUNDS = 5
"""Passes over all modules when they are timed; the median counts."""
_PROBE_TOKENS = 4
_NORMS = {"attn.qkv.q": "attn_norm", "attn.qkv.k": "attn_norm", "attn.qkv.v": "attn_norm", "mlp.gate": "mlp_norm",
          "mlp.up": "mlp_norm"}  # fmt: skip
"""Which norm a module of a layer reads."""
_LEAST_SCALING = 0.02
"""Norms that differ by less were rounded; by more they were rescaled on purpose (SmoothQuant)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One module in both copies."""

    path: str
    layer: int | None
    reference: nn.Module
    candidate: nn.Module
    scaling: Tensor | None
    """`[D]`, what the candidate's input has been multiplied with on purpose, that the reference's has not."""
    restoring: Tensor | None
    """`[N]`, what the candidate's output is multiplied with to be the reference's."""
    dtype: torch.dtype
    """Of the candidate's inputs."""

    @property
    def part(self) -> str:
        """The path within the layer."""
        return self.path if self.layer is None else self.path.split(".", 2)[2]

    def stand_in(self) -> nn.Module:
        """The candidate's module for the reference's place: takes and gives the reference's type."""
        return _StandIn(self.candidate, self.dtype, self.scaling, self.restoring)


class _StandIn(nn.Module):
    def __init__(
        self, inner: nn.Module, dtype: torch.dtype, scaling_D: Tensor | None, restoring_N: Tensor | None
    ) -> None:
        super().__init__()
        self.inner, self.dtype, self.scaling_D, self.restoring_N = inner, dtype, scaling_D, restoring_N

    def forward(self, x: Tensor, *more: Rope | Mask | None) -> Tensor:
        if self.scaling_D is not None:
            x = x * self.scaling_D
        if x.is_floating_point():
            x = x.to(self.dtype)
        more = tuple(Rope(*(part.to(self.dtype) for part in one)) if isinstance(one, Rope) else one for one in more)
        y: Tensor = self.inner(x, *more)
        return y.float() if self.restoring_N is None else y.float() * self.restoring_N


def find_pairs(reference: GPT, candidate: GPT) -> list[Pair]:
    """Every product with weights, and the embedding where it differs.

    A module whose twin has other sizes (structured pruning) is taken together with the whole attention or MLP.
    """
    dtype = next(candidate.norm.parameters()).dtype  # that of the stream between the modules
    names = [path for path, module in reference.named_modules() if isinstance(module, nn.Linear)]
    ours, theirs = _widths(reference, names), _widths(candidate, names)
    paths: dict[str, None] = {}
    if type(candidate.embed) is not nn.Embedding or candidate.embed.weight.dtype != reference.embed.weight.dtype:
        paths["embed"] = None
    for name in names:
        block = ".".join(name.split(".")[:3])  # blocks.3.mlp
        alike = all(
            ours[other] == theirs.get(other) for other in names if other == name or other.startswith(block + ".")
        )
        paths[name if alike or not name.startswith("blocks.") else block] = None
    return [_pair(reference, candidate, path, dtype) for path in paths]


def _pair(reference: GPT, candidate: GPT, path: str, dtype: torch.dtype) -> Pair:
    layer = int(path.split(".")[1]) if path.startswith("blocks.") else None
    norm = None
    if layer is None:
        norm = "norm" if path == "lm_head" else None
    elif (name := _NORMS.get(path.split(".", 2)[2])) is not None:
        norm = f"blocks.{layer}.{name}"
    scaling_D = None if norm is None else _scaling(reference.get_submodule(norm), candidate.get_submodule(norm))
    restoring_N = None
    if path.endswith((".mlp.up", ".mlp.down")):
        moved_F = getattr(candidate.get_submodule(path.rpartition(".")[0]), "smoothing", None)
        if moved_F is not None and path.endswith(".down"):
            scaling_D = 1.0 / moved_F
        elif moved_F is not None:
            restoring_N = moved_F
    twins = reference.get_submodule(path), candidate.get_submodule(path)
    return Pair(path, layer, *twins, scaling_D, restoring_N, dtype)


def _scaling(ours: nn.Module, theirs: nn.Module) -> Tensor | None:
    """Factor of each feature between two norms; None when they are the same but for rounding."""
    ours_D, theirs_D = getattr(ours, "weight", None), getattr(theirs, "weight", None)
    if not isinstance(ours_D, Tensor) or not isinstance(theirs_D, Tensor) or ours_D.shape != theirs_D.shape:
        return None
    ratio_D = torch.where(ours_D == 0, torch.ones_like(ours_D), theirs_D.float() / ours_D.float())
    return ratio_D if bool(((ratio_D - 1).abs() > _LEAST_SCALING).any()) else None


def _widths(model: GPT, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Features in and out of these modules, where the model has them."""
    present = {path for path, _ in model.named_modules()}
    tokens_1L = torch.zeros(1, _PROBE_TOKENS, dtype=torch.long, device=model.embed.weight.device)
    with captured(model, [name for name in names if name in present]) as seen:
        model(tokens_1L)
    return {name: (x.shape[-1], y.shape[-1]) for name, (x, y) in seen.items()}


@contextmanager
def captured(model: GPT, names: Sequence[str]) -> Iterator[dict[str, tuple[Tensor, Tensor]]]:
    """Inside, calls of the model leave the first input and the output of these modules in the dictionary."""
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def hook_of(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def hook(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            seen[name] = (inputs[0], output)

        return hook

    handles = [model.get_submodule(name).register_forward_hook(hook_of(name)) for name in names]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def swapped(model: GPT, pair: Pair) -> Iterator[None]:
    """Inside, the candidate's module stands in the reference model."""
    set_module(model, pair.path, pair.stand_in())
    try:
        yield
    finally:
        set_module(model, pair.path, pair.reference)


def time_pairs(prepared: PreparedModel, pairs: Sequence[Pair], rows: int) -> dict[str, tuple[float, float]]:
    """Microseconds of one call of each module in both copies.

    All modules of a copy are called in turn, as a step does, so that the caches hold what they hold in a step.
    """
    calls = [(pair.path, _call(prepared, pair, rows)) for pair in pairs]
    spent: dict[str, tuple[list[float], list[float]]] = {pair.path: ([], []) for pair in pairs}
    for number in range(ROUNDS + 1):
        for side in (0, 1):
            for path, both in calls:
                begun_ns = time.perf_counter_ns()
                both[side]()
                if prepared.device.type == "cuda":
                    torch.cuda.synchronize(prepared.device)
                if number:  # the first round warms up
                    spent[path][side].append((time.perf_counter_ns() - begun_ns) / 1e3)
    return {path: (statistics.median(ours), statistics.median(theirs)) for path, (ours, theirs) in spent.items()}


def _call(prepared: PreparedModel, pair: Pair, rows: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Calls of both modules on `rows` rows of a random input of the right size."""
    config, device = prepared.config, prepared.device
    generator = torch.Generator().manual_seed(0)
    if pair.path == "embed":
        ids = torch.randint(0, config.vocab_size, (1, rows), generator=generator).to(device)
        return (lambda: pair.reference(ids)), (lambda: pair.candidate(ids))
    width = pair.reference.in_features if isinstance(pair.reference, nn.Linear) else config.d_model
    x_BLD = torch.randn(1, rows, width, generator=generator).to(device)
    cast_BLD = x_BLD.to(pair.dtype)
    if not pair.path.endswith(".attn"):
        return (lambda: pair.reference(x_BLD)), (lambda: pair.candidate(cast_BLD))
    length = min(rows, config.context_length)
    mask = make_mask(0, length, None, config.sliding_window, device)
    position_1L = torch.arange(length, device=device)[None]
    ropes = [
        None if config.position == "learned" else make_rope(config, position_1L, dtype)
        for dtype in (torch.float32, pair.dtype)
    ]
    return (
        lambda: pair.reference(x_BLD[:, :length], ropes[0], mask, None),
        lambda: pair.candidate(cast_BLD[:, :length], ropes[1], mask, None),
    )
