"""Variants in few words: what the window, the cards and the list of runs call them."""

import string

from gptscope.profiling.experiment import OptionValue, Variant, variant_name

_WORDS = {
    "int8": "INT8",
    "fp8": "FP8",
    "mxfp8": "MXFP8",
    "nvfp4": "NVFP4",
    "smoothquant": "SmoothQuant",
    "weight": "weight",
    "only": "only",
    "rowwise": "row-wise",
}
BASELINE = "baseline"
"""What the variant that the others are held against is called, in the window, the terminal and names of files."""
_MOST_OPTIONS = 2
"""Settings that a name spells out; more are counted."""


def short_names(variants: int) -> tuple[str, ...]:
    """What an experiment's variants are called in few letters: `baseline`, `A`, `B`, …; after `Z` come `A1`, `B1`."""
    letters = string.ascii_uppercase
    return (BASELINE, *(f"{letters[i % 26]}{i // 26 or ''}" for i in range(variants - 1)))


def precision_title(name: str) -> str:
    """`BF16`, `INT8 dynamic`, `INT8 weight-only`, `FP8 delayed`."""
    first, *rest = name.lower().split("-")
    words = "-".join(_WORDS.get(word, word) for word in rest)
    return f"{_WORDS.get(first, first.upper())} {words}".rstrip()


def active_options(variant: Variant) -> dict[str, dict[str, OptionValue]]:
    """The settings of levers that are on; a person may have left others behind."""
    on = {variant.precision, variant.kv_cache, variant.pruning, variant.speculation, *variant.fusions} - {"none"}
    return {lever: options for lever, options in variant.options.items() if lever in on and options}


def option_phrases(variant: Variant) -> tuple[str, ...]:
    """What differs from the levers' defaults, in few words: `granularity tensor`, `keeps 3`, `no head`."""
    phrases = []
    for lever, options in sorted(active_options(variant).items()):
        for name, value in sorted(options.items()):
            phrases.append(_phrase(name, value, lever, variant))
    return tuple(phrases)


def _phrase(name: str, value: OptionValue, lever: str, variant: Variant) -> str:
    words = name.replace("-", " ").replace("_", " ")
    if isinstance(value, bool):
        return words if value else f"no {words}"
    if name == "keep":
        count = len(kept_modules(str(value)))
        return f"keeps {count}" if count > 1 else f"keeps {value}" if count else "keeps none"
    text = str(value)
    if len(text) > 24:
        text = f"…{text[-20:]}"
    return f"{words} {text}"


def kept_modules(text: str) -> tuple[str, ...]:
    """The paths and patterns of an option `keep`."""
    for separator in ",;+":
        text = text.replace(separator, " ")
    return tuple(text.split())


def title_of(variant: Variant) -> str:
    """A short name for people: `FP32 plain` rather than every default, `INT8 dynamic, granularity tensor`."""
    if variant.name:
        return variant.name
    options = option_phrases(variant)
    shown = options if len(options) <= _MOST_OPTIONS else (*options[: _MOST_OPTIONS - 1], f"{len(options) - 1} more")
    levers = [name for name in (variant.pruning, variant.speculation) if name != "none"]
    weights = [f"weights of {_base(variant.model)}"] if variant.model is not None else []
    precision = precision_title(variant.precision)
    if variant.fusions == () and variant.kv_cache == "dynamic" and variant.threads is None:
        plain = f"{precision} plain" if not (levers or shown or weights or "-" in variant.precision) else precision
        return ", ".join([plain, *levers, *shown, *weights])
    bare = Variant(fusions=variant.fusions, kv_cache=variant.kv_cache, threads=variant.threads)
    _, *rest = variant_name(bare).split(", ")
    threads = [rest.pop()] if variant.threads is not None else []
    return ", ".join([precision, *rest, *levers, *shown, *weights, *threads])


def run_title(name: str, variant: Variant) -> str:
    """What a kept run is called: the name that a person gave it, else its levers in few words."""
    return name if variant.name else title_of(variant)


def _base(source: str) -> str:
    return source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
