"""Short readable names for operators, kernels, types and modules. Meaning goes last, letters first."""

import re
from functools import lru_cache

from gptscope.profiling.trace.product_names import demangled, product_name
from gptscope.profiling.trace.table import GENERATED_PREFIX

_LAYER = re.compile(r"^((?:\w+\.)*?(?:blocks|layers|h))\.\d+(?=\.|$)")
_NUMBERED_CLASS = re.compile(r"(?<![^.])([A-Z]\w*?)_\d+(?=\.|$)")
MOST_LOOKED_AT = 4096
"""Characters of a name; searching in longer ones takes forever and finds nothing more."""
TYPE_NAMES: dict[str, str] = {
    "float": "fp32",
    "double": "fp64",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "c10::Float8_e4m3fn": "fp8 e4m3",
    "c10::Float8_e5m2": "fp8 e5m2",
    "signed char": "int8",
    "unsigned char": "uint8",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
    "bool": "bool",
}
"""The profiler's type name -> ours."""
DRAFT_SCOPE = "draft"
"""Module path of the smaller model that guesses (speculative decoding); its parts lie below."""
_PYTHON_FUNCTION = re.compile(r"(.+)\(\d+\): (.+)")
"""`file(line): function`, as the profiler names Python's."""
_INNER = re.compile(r"CUDAFunctor_(?:On\w+_)?(\w+)|(\w+?)Functor<|(\w+?)_kernel_cuda|(\w+?)_?[kK]ernel_?[iI]mpl\b")
_WRAPPING = frozenset({"device_kernel", "Kernel", "Kernel2"})
"""Kernels that only call what their first template argument names."""
_ARGUMENT = re.compile(r"(\w+)<")
_SAYS_NOTHING = frozenset({"Binary", "Unary", "AUnary", "BUnary", "gpu", "void", "Out"})
_LISTED = re.compile(r"((?:cutlass_(?:\d|tensorop|simt)|sm\d+_xmma_|nvjet_|Cijk_|ampere_|volta_)\w+)")


def collapse_layers(module: str) -> str:
    """`blocks.3.mlp.down` -> `blocks.*.mlp.down`, so that a person sees one row for all layers.

    Paths of Python's own records name classes with running numbers: `GPT_0.Block_3.Linear_7` -> `GPT.Block.Linear`.
    """
    return _NUMBERED_CLASS.sub(r"\1", _LAYER.sub(r"\1.*", module))


def of_draft(module: str) -> bool:
    """Whether a module is the smaller model that guesses, or lies in it."""
    return module == DRAFT_SCOPE or module.startswith(f"{DRAFT_SCOPE}.")


def module_tail(module: str) -> str:
    """The part of a module path that a person names it by: `blocks.*.mlp.down` -> `mlp.down`."""
    whose = f"{DRAFT_SCOPE} " if of_draft(module) else ""
    _, star, rest = module.partition(".*")
    if not star:
        return module
    return whose + (rest.removeprefix(".") or "block")


def type_name(profiler_type: str) -> str:
    """`c10::BFloat16` -> `bf16`; unknown names stay."""
    return TYPE_NAMES.get(profiler_type, profiler_type)


@lru_cache(maxsize=65536)
def short_name(name: str) -> str:
    """An operator without its namespace, a C++ kernel without its templates and arguments, at most 60 characters."""
    name = name[:MOST_LOOKED_AT]
    if name.startswith(GENERATED_PREFIX):
        return f"generated code {name.removeprefix(GENERATED_PREFIX).strip('# ')[:8]}"
    product = product_name(name)
    if product is not None:
        return _elided(product)
    name = demangled(name)
    if ("::" not in name and "<" not in name and "(" not in name) or name.startswith(("Memcpy ", "Memset ")):
        return _elided(name)
    if re.fullmatch(r"[\w]+::[\w.]+", name):
        return _elided(name.split("::", 1)[1])
    if name.startswith("autograd::engine::evaluate_function: "):
        return _elided(name.removeprefix("autograd::engine::evaluate_function: ") + " (engine)")
    python = _PYTHON_FUNCTION.fullmatch(name)
    if python is not None:  # `<module>` and `<lambda>` are no templates
        return _elided(f"{python.group(1)}: {python.group(2)}")
    listed = _LISTED.search(name)
    if listed is not None:
        return _elided(listed.group(1))
    outer = _without_brackets(name).removeprefix("void ").split("::")[-1].strip()
    if outer in _WRAPPING:
        called = (one for one in _ARGUMENT.findall(name) if one not in _WRAPPING and not one.startswith("enable_"))
        outer = next(called, outer)
    found = (one for groups in _INNER.findall(name) for one in groups if one and one not in _SAYS_NOTHING)
    inner = next(found, "")
    inner = "" if inner and inner.lower() in outer.lower() else inner
    return _elided(f"{inner} ({outer})" if inner else outer or name)


def _without_brackets(name: str) -> str:
    """Drop everything inside <...> and (...), nested ones too."""
    kept, depth = [], 0
    for character in name.replace("(anonymous namespace)", ""):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def _elided(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def row_label(name: str, module: str, dtypes: tuple[str, ...], *, product: bool, one_row: bool) -> str:
    """What a person reads first in a kernel table: `mlp.down, bf16 GEMV`, `attn_norm, mul`, `argmax`.

    Args:
        name: Operator or kernel.
        module: Module path with collapsed layers, empty for none.
        dtypes: Input types as the profiler names them.
        product: It is a matrix product outside attention, with known sizes.
        one_row: A product with a single row: its time is that of reading the matrix.
    """
    short = short_name(name)
    if product:
        kind = "GEMV" if one_row else "GEMM"
        short = f"{type_name(dtypes[0])} {kind}" if dtypes else kind
    return f"{module_tail(module)}, {short}" if module else short
