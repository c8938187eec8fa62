"""Names of a model's matrices as the textbook form has them, and which of them a fused layer holds.

`blocks.3.attn.qkv.q`, `.k`, `.v`, `blocks.3.attn.out`, `blocks.3.mlp.gate` (SwiGLU), `.up`, `.down`, `lm_head`,
`embed`.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from torch import nn

from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverError

_FUSED = {"attn.qkv.proj": ("attn.qkv.q", "attn.qkv.k", "attn.qkv.v"), "mlp.gate_up": ("mlp.gate", "mlp.up")}


def linears(model: GPT) -> dict[str, nn.Linear]:
    """Every layer that multiplies by a plain matrix, under its path in the model as it is now."""
    return {path: module for path, module in model.named_modules() if isinstance(module, nn.Linear)}


def textbook_names(path: str) -> tuple[str, ...]:
    """The textbook matrices in one layer: several for a fused one."""
    for fused, parts in _FUSED.items():
        if path.endswith(fused):
            return tuple(path.removesuffix(fused) + part for part in parts)
    return (path,)


def input_name(path: str) -> str:
    """Name of what a layer reads; layers that read the same have the same one, fused or not."""
    block, _, matrix = path.partition(".attn.qkv.")
    if matrix:
        return f"{block}.attn.qkv"
    block, _, matrix = path.partition(".mlp.")
    return f"{block}.mlp.up" if matrix in ("gate", "up", "gate_up") else path


def split_patterns(text: str) -> tuple[str, ...]:
    """`lm_head, *.mlp.down` as single patterns; `+` or blanks may stand in place of commas."""
    return tuple(text.translate(str.maketrans(";,+", "   ")).split())


def matching(paths: Iterable[str], patterns: Sequence[str]) -> set[str]:
    """The layers that any pattern names: a full name, the beginning of one up to a dot, or with `*` and `?`.

    A fused layer is named as soon as one of its textbook matrices is.

    Raises:
        LeverError: A pattern names nothing.
    """
    known = {path: (path, *textbook_names(path)) for path in paths}
    found: set[str] = set()
    for pattern in patterns:
        hits = {path for path, names in known.items() if any(_names(pattern, name) for name in names)}
        if not hits:
            examples = ", ".join(dict.fromkeys(name for path in list(known)[:4] for name in textbook_names(path)))
            raise LeverError(f"No layer is called {pattern!r}. Layers are called, for example, {examples}, lm_head.")
        found |= hits
    return found


def _names(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern) or name.startswith(pattern + ".")


def set_module(root: nn.Module, path: str, module: nn.Module) -> None:
    """Put `module` at `path` below `root`."""
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)
