"""The command line that does what the Setup dock would do."""

import shlex

from gptscope.app.viewmodels.variant_names import active_options
from gptscope.profiling.experiment import DEFAULT_SEED, Experiment, Variant, flat_options


def command_line(experiment: Experiment, variant: Variant) -> str:
    """The command that does the same without a window: `run`, or `compare` beside a baseline."""
    work = experiment.workload
    several = len(experiment.variants) > 1
    parts = ["gptscope", "compare" if several else "run", "--model", experiment.model, "--workload", work.kind]
    if several:
        baseline, *candidates = experiment.variants
        parts += ["--baseline", _spec(baseline, work.kind)]
        for candidate in candidates:
            parts += ["--candidate", _spec(candidate, work.kind)]
    else:
        parts += _levers(variant, work.kind)
    parts += ["--batch", str(work.batch), "--context", str(work.context)]
    if work.kind in ("decode", "generate"):
        parts += ["--new-tokens", str(work.new_tokens)]
    parts += ["--steps", str(work.steps)]
    if work.seed != DEFAULT_SEED:
        parts += ["--seed", str(work.seed)]
    if not several and variant.threads is not None:
        parts += ["--threads", str(variant.threads)]
    if experiment.device != "auto":
        parts += ["--device", experiment.device]
    if work.kind == "generate" and work.prompt:
        parts += ["--prompt", work.prompt]
    if several and not experiment.quality:
        parts.append("--no-quality")
    if several and experiment.text is not None:
        parts += ["--text", experiment.text]
    if several and experiment.seeds > 1:
        parts += ["--seeds", str(experiment.seeds)]
    if several and experiment.layer_map:
        parts.append("--layer-map")
    return shlex.join(parts)


def _levers(variant: Variant, kind: str) -> list[str]:
    parts = ["--precision", variant.precision, "--fuse", ",".join(variant.fusions) or "none"]
    if kind in ("decode", "generate"):
        parts += ["--kv-cache", variant.kv_cache]
    for name in ("pruning", "speculation"):
        if getattr(variant, name) != "none":
            parts += [f"--{name}", getattr(variant, name)]
    for setting in _settings(variant):
        parts += ["--option", setting]
    return parts


def _spec(variant: Variant, kind: str) -> str:
    """`precision=bf16,fuse=qkv+norm,kv-cache=static`, as `gptscope compare` reads it."""
    parts = [f"precision={variant.precision}", f"fuse={'+'.join(variant.fusions) or 'none'}"]
    if kind in ("decode", "generate"):
        parts.append(f"kv-cache={variant.kv_cache}")
    parts += [
        f"{name}={getattr(variant, name)}" for name in ("pruning", "speculation") if getattr(variant, name) != "none"
    ]
    parts += _settings(variant)
    if variant.model is not None:
        parts.append(f"model={variant.model}")
    if variant.threads is not None:
        parts.append(f"threads={variant.threads}")
    return ",".join(parts)


def _settings(variant: Variant) -> list[str]:
    bare = Variant(options=active_options(variant))
    return [f"{lever}.{name}={value.replace(',', '+')}" for lever, name, value in flat_options(bare)]
