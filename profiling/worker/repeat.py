"""What repeats a run exactly: its command line, and the environment variables that decide speed."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from gptscope.profiling.experiment import Experiment, Variant, flat_options

# Settings of the thread pools, math libraries, allocator, compiler and GPU runtimes. None of them holds secrets.
_PREFIXES = (
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "ONEDNN_", "DNNL_", "VECLIB_",
    "TORCH", "PYTORCH_", "ATEN_", "CUDA_", "CUBLAS_", "NVIDIA_", "NVTE_", "MALLOC_",
)  # fmt: skip
_NAMES = ("LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "CXX", "TRITON_CACHE_DIR")


def environment_that_matters(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The set environment variables that change speed or numbers, sorted by name.

    Args:
        environment: Where to look; None: this process's.
    """
    found = os.environ if environment is None else environment
    return {name: found[name] for name in sorted(found) if name.startswith(_PREFIXES) or name in _NAMES}


def command_line(experiment: Experiment, variant: Variant, *, device: str, threads: int) -> str:
    """The `gptscope run` command, quoted for a POSIX shell, that repeats one variant of an experiment.

    Args:
        experiment: What was asked.
        variant: The variant to repeat.
        device: Where it really ran (`auto` resolved).
        threads: How many threads it really had.
    """
    work = experiment.workload
    source = variant.model or experiment.model
    local = Path(source).expanduser()
    model = str(local.resolve()) if local.exists() else source
    words = [
        "gptscope", "run",
        "--model", model,
        "--workload", work.kind,
        "--precision", variant.precision,
        "--fuse", ",".join(variant.fusions) or "none",
        "--kv-cache", variant.kv_cache,
        "--batch", str(work.batch),
        "--context", str(work.context),
        "--new-tokens", str(work.new_tokens),
        "--steps", str(work.steps),
        "--device", device,
        "--threads", str(threads),
        "--seed", str(work.seed),
    ]  # fmt: skip
    for option, lever in (("--pruning", variant.pruning), ("--speculation", variant.speculation)):
        if lever != "none":
            words += [option, lever]
    for lever, name, value in flat_options(variant):
        words += ["--option", f"{lever}.{name}={value}"]
    if work.prompt is not None and work.kind == "generate":  # the option makes any workload `generate`
        words.append(f"--prompt={work.prompt}")  # one word, because a prompt may begin with a dash
    if experiment.profile_steps is not None:
        words += ["--profile-steps", str(experiment.profile_steps)]
    return shlex.join(words)
