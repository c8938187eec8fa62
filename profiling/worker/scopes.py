"""Module scopes in a profile: every call of a module is wrapped in an annotation `module: blocks.0.attn`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

SCOPE_PREFIX = "module: "


@contextmanager
def module_scopes(model: nn.Module, name: str = "") -> Iterator[None]:
    """Annotate the calls of all submodules inside the block; afterwards the model is as it was.

    Args:
        model: Whose modules.
        name: Of the model itself, which is annotated too and stands before its submodules' paths; empty: it is not.

    The annotations cost a few microseconds per call, which is part of the profiler's overhead that gptscope states.
    """
    handles = []
    named = [(name, model)] if name else []
    try:
        for path, module in (*named, *_callable_modules(model, f"{name}." if name else "")):
            scope = _Scope(SCOPE_PREFIX + path)
            handles.append(module.register_forward_pre_hook(scope.enter))
            handles.append(module.register_forward_hook(scope.leave, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _callable_modules(parent: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Submodules with their paths, but nothing inside a compiled region: a hook there would compile it anew.

    The lever `compile` keeps what torch.compile made in the attribute `compiled` of the module that calls it.
    """
    for name, module in parent.named_children():
        path = f"{prefix}{name}"
        yield path, module
        if not hasattr(module, "compiled"):
            yield from _callable_modules(module, f"{path}.")


class _Scope:
    """Opens and closes one module's annotation; a stack, because a module may call itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[torch.profiler.record_function] = []

    def enter(self, _module: nn.Module, _inputs: tuple[Any, ...]) -> None:
        scope = torch.profiler.record_function(self._name)
        scope.__enter__()
        self._open.append(scope)

    def leave(self, _module: nn.Module, _inputs: tuple[Any, ...], _output: object) -> None:
        if self._open:
            self._open.pop().__exit__(None, None, None)
