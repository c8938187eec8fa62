"""Short names for the kernels of matrix products, whose own names are lists of settings: type, kind, tile, layout."""

import re

_TENSILE = re.compile(r"^Cijk_(A\w{3})_(B\w{3})_(F8|I8|[A-Z])\w*?_MT(\d+x\d+x\d+)")
_TENSILE_TYPES = {"B": "bf16", "H": "fp16", "S": "fp32", "D": "fp64", "F8": "fp8", "I8": "int8", "Z": "complex128"}
_TENSILE_LAYOUT = {"Ailk": "n", "Alik": "t", "Bljk": "n", "Bjlk": "t"}
_XMMA = re.compile(r"\b(sm\d+)_xmma_(gemm|fprop|dgrad|wgrad)\w*?_([a-z]+\d+)\w*?_tilesize(\d+x\d+(?:x\d+)?)")
_CUTLASS = re.compile(r"\bcutlass(?:3x)?_(?:(?:sm)?(\d+)_)?(?:wmma_)?(tensorop|simt)_(\w+)")
_MOST = 512
"""Characters that are looked at; what says something comes first."""
_KINDS = {"gemm": "GEMM", "fprop": "conv", "dgrad": "conv dgrad", "wgrad": "conv wgrad"}
_KIND = re.compile(r"gemm|fprop|dgrad|wgrad")
_TYPE = re.compile(r"(?:^|_)(bf16|f16|tf32|e4m3|e5m2|s8|u8|f64)(?=_|s\d|i\d|gemm|$)")
_TYPES = {"f16": "fp16", "e4m3": "fp8", "e5m2": "fp8", "s8": "int8", "u8": "uint8", "f64": "fp64", "f32": "fp32"}
_TILE = re.compile(r"_(\d+x\d+(?:x\d+)?)(?=_|$)")
_LAYOUT = re.compile(r"_([nt]{2})[nt]?(?=_|$)")


def product_name(name: str) -> str | None:
    """Such as `bf16 GEMM 128x128x64 tn (xmma sm90)`; None for a kernel that is not named by such a list."""
    name = name[:_MOST]
    tensile = _TENSILE.match(name)
    if tensile is not None:
        a, b, kind, size = tensile.groups()
        layout = _TENSILE_LAYOUT.get(a, "?") + _TENSILE_LAYOUT.get(b, "?")
        return f"{_TENSILE_TYPES.get(kind, kind)} GEMM {size} {layout} (Tensile)"
    xmma = _XMMA.search(name)
    if xmma is not None:
        device, kind, first, size = xmma.groups()
        of_layout = _LAYOUT.search(name)
        layout = of_layout.group(1) if of_layout else ""
        return " ".join(filter(None, (_TYPES.get(first, first), _KINDS[kind], size, layout, f"(xmma {device})")))
    cutlass = _CUTLASS.search(name)
    if cutlass is None:
        return None
    device, unit, settings = cutlass.groups()
    of_kind, of_type, of_tile, in_layout = (p.search(settings) for p in (_KIND, _TYPE, _TILE, _LAYOUT))
    if of_kind is None:
        return None
    kind = _KINDS[of_kind.group()]
    text = [_TYPES.get(of_type.group(1), of_type.group(1)) if of_type else "", kind]
    text += [of_tile.group(1) if of_tile else "", in_layout.group(1) if in_layout else ""]
    where = " ".join(filter(None, ("CUTLASS", unit if unit == "simt" else "", f"sm{device}" if device else "")))
    return " ".join(filter(None, (*text, f"({where})")))


def demangled(name: str) -> str:
    """The last plain identifier of a mangled C++ name with its namespace; other names stay."""
    if not name.startswith("_ZN"):
        return name
    parts, position = [], 3
    while (length := re.match(r"\d{1,5}", name[position : position + 5])) is not None:
        start = position + length.end()
        position = start + int(length.group())
        parts.append(name[start:position])
    named = [part for part in parts if part and not part.startswith("_GLOBAL__")]
    return f"{named[-1]} ({named[0]})" if len(named) > 1 else named[0] if named else name
