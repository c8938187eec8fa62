"""Options that several commands share, and what they mean as an `Experiment`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from gptscope.app.cli.names import name_problem
from gptscope.profiling.experiment import DEFAULT_SEED, KV_CACHES, Experiment, OptionValue, Variant, Workload

WORKLOADS = ("train", "prefill", "decode", "generate")
DEVICES = ("auto", "cpu", "cuda")
MOST_THREADS = 1024
"""Thread pools crash with some ten thousand; nothing that exists gains from more than this."""
_SPEC_KEYS = ("precision", "fuse", "kv-cache", "pruning", "speculation", "model", "threads", "name")
_DEFAULTS = Workload()
MOST_STEPS = 1_000_000
_LARGEST_SEED = 2**63 - 1


class ArgumentTarget(Protocol):
    """A parser or a group of its options."""

    def add_argument(self, *names: str, **options: Any) -> Any:
        """Declare an option."""


class UsageError(ValueError):
    """The command line asks for something impossible; told in a sentence with exit code 2."""


def add_workload_options(parser: argparse.ArgumentParser) -> None:
    """What to run: model, workload, its sizes, the device."""
    group = parser.add_argument_group("what to run")
    group.add_argument(
        "--model",
        default="bundled",
        metavar="M",
        help="`bundled`, `preset:NAME`, a catalogue name, a Hugging Face folder or hub id, a .gguf file, "
        "a nanoGPT .pt file (default: bundled; `gptscope models list` shows the names)",
    )
    group.add_argument("--workload", choices=WORKLOADS, default="decode", help="default: decode")
    group.add_argument("--batch", type=int, default=_DEFAULTS.batch, metavar="N", help="sequences at once (default: 1)")
    group.add_argument(
        "--context",
        type=int,
        default=_DEFAULTS.context,
        metavar="N",
        help=f"prompt tokens per sequence; for train the sequence length (default: {_DEFAULTS.context})",
    )
    group.add_argument(
        "--new-tokens",
        type=int,
        default=_DEFAULTS.new_tokens,
        metavar="N",
        help=f"tokens to generate per sequence (default: {_DEFAULTS.new_tokens})",
    )
    group.add_argument(
        "--steps",
        type=int,
        default=_DEFAULTS.steps,
        metavar="N",
        help="measured optimizer steps (train), prompts (prefill) or whole sequences (decode, generate) "
        f"(default: {_DEFAULTS.steps})",
    )
    group.add_argument("--seed", type=int, default=DEFAULT_SEED, metavar="N", help=f"default: {DEFAULT_SEED}")
    group.add_argument("--prompt", metavar="TEXT", help="text to continue; makes the workload `generate`")
    group.add_argument("--device", choices=DEVICES, default="auto", help="default: auto")


def add_lever_options(parser: argparse.ArgumentParser) -> None:
    """The levers of one variant."""
    group = parser.add_argument_group("levers")
    group.add_argument(
        "--precision",
        default="fp32",
        metavar="P",
        help="fp32, tf32, bf16, fp16, int8-…, fp8-… as `gptscope doctor` lists (default: fp32)",
    )
    group.add_argument(
        "--fuse",
        default="none",
        metavar="F",
        help="`none`, `all` (every available one but compile), or names such as attention,qkv,mlp,norm,optimizer,"
        "packed_linear,compile (default: none)",
    )
    group.add_argument(
        "--kv-cache", choices=KV_CACHES, default="dynamic", help="how keys and values are kept (default: dynamic)"
    )
    group.add_argument(
        "--pruning", default="none", metavar="P", help="`none` or one of `gptscope doctor` (default: none)"
    )
    group.add_argument(
        "--speculation", default="none", metavar="S", help="`none` or one of `gptscope doctor` (default: none)"
    )
    group.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="LEVER.NAME=VALUE",
        help="a setting of a lever, such as int8-static.granularity=channel; may be repeated",
    )
    group.add_argument("--threads", type=int, metavar="N", help="kernel threads (default: one per physical core)")


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """How long to record and to run."""
    group = parser.add_argument_group("measuring")
    group.add_argument(
        "--profile-steps",
        type=int,
        metavar="N",
        help="steps or tokens to record after measuring, 0 for none (default: chosen by workload)",
    )
    group.add_argument(
        "--time-limit", type=float, default=1800.0, metavar="S", help="stop after S seconds, keeping what was measured"
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Where results go beside the terminal."""
    group = parser.add_argument_group("results")
    add_json_option(group)
    add_file_options(group)
    add_library_options(group)
    group.add_argument("--no-keep", action="store_true", help="do not keep the run in the library")


def add_file_options(parser: ArgumentTarget) -> None:
    """Files that hold one run each."""
    parser.add_argument("--trace", type=Path, metavar="F", help="write the Kineto trace as recorded to F (.json.gz)")
    parser.add_argument(
        "--csv", type=Path, metavar="F", help="write the kernel table to F and the step samples to F-steps, as CSV"
    )


def add_json_option(parser: ArgumentTarget) -> None:
    """The same result for programs."""
    parser.add_argument("--json", metavar="F", help="write the result as JSON to F (`-`: to standard output)")


def add_library_options(parser: ArgumentTarget) -> None:
    """Which library of runs to use."""
    parser.add_argument("--library", type=Path, metavar="DIR", help="folder of the run library (default: user data)")


def variant_from(args: argparse.Namespace) -> Variant:
    """The variant that `--precision`, `--fuse`, `--kv-cache` and `--threads` describe.

    Raises:
        UsageError: A lever does not exist, or a number is impossible.
    """
    variant = Variant(
        precision=args.precision.lower(),
        fusions=parse_fusions(args.fuse, separators=","),
        kv_cache=args.kv_cache,
        pruning=args.pruning.lower(),
        speculation=args.speculation.lower(),
        options=parse_options(args.option, "--option"),
        threads=checked_threads(args.threads),
    )
    problem = name_problem(variant)
    if problem:
        raise UsageError(problem)
    return variant


def parse_options(given: Sequence[str], option: str) -> dict[str, dict[str, OptionValue]]:
    """`["int8-static.granularity=channel"]` by lever; options and values are checked by the engine, which knows them.

    Raises:
        UsageError: A part is not `LEVER.NAME=VALUE`.
    """
    options: dict[str, dict[str, OptionValue]] = {}
    for part in given:
        path, equals, value = part.partition("=")
        lever, dot, name = path.strip().rpartition(".")
        if not (equals and dot and lever and name):
            raise UsageError(f"{option}: {part!r} is not LEVER.NAME=VALUE. Example: int8-static.granularity=channel")
        options.setdefault(lever.lower(), {})[name.lower()] = value.strip()
    return options


def parse_fusions(text: str, *, separators: str) -> tuple[str, ...]:
    """`none` is (), `a,b` is (a, b); `name_problem` judges the names.

    Raises:
        UsageError: `none` beside other names.
    """
    for separator in separators:
        text = text.replace(separator, " ")
    names = tuple(dict.fromkeys(text.lower().split()))
    if "none" in names:
        if len(names) > 1:
            raise UsageError(f"--fuse {text!r} asks for none and for others. Give `none`, or names without it.")
        return ()
    return names


def parse_variant(spec: str, default: Variant, option: str) -> Variant:
    """A variant from `precision=bf16,fuse=attention+qkv,kv-cache=static,threads=2,name=...`; the rest from `default`.

    Settings of levers stand between them: `int8-static.granularity=channel`.

    Raises:
        UsageError: a part is not `key=value`, or the key or value is unknown.
    """
    values: dict[str, str] = {}
    settings: list[str] = []
    for part in filter(None, (piece.strip() for piece in spec.split(","))):
        key, equals, value = part.partition("=")
        key = key.strip().lower().replace("_", "-")
        if equals and "." in key:
            settings.append(part)
            continue
        if not equals or key not in _SPEC_KEYS:
            raise UsageError(
                f"{option}: {part!r} is not one of {', '.join(f'{name}=...' for name in _SPEC_KEYS)}. Example: "
                f'{option} "precision=bf16,fuse=attention+qkv,kv-cache=static" (several fusions with +).'
            )
        if key in values:
            raise UsageError(f"{option}: {key} is given twice.")
        values[key] = value.strip()
    kv_cache = values.get("kv-cache", default.kv_cache).lower()
    if kv_cache not in KV_CACHES:
        raise UsageError(f"{option}: kv-cache={kv_cache} is unknown. Give one of {', '.join(KV_CACHES)}.")
    variant = Variant(
        precision=values.get("precision", default.precision).lower(),
        fusions=parse_fusions(values["fuse"], separators="+") if "fuse" in values else default.fusions,
        kv_cache=kv_cache,
        pruning=values.get("pruning", default.pruning).lower(),
        speculation=values.get("speculation", default.speculation).lower(),
        options=default.options | parse_options(settings, option),
        model=values.get("model", default.model),
        threads=_threads_from(values["threads"], option) if "threads" in values else default.threads,
        name=values.get("name", ""),
    )
    problem = name_problem(variant)
    if problem:
        raise UsageError(f"{option}: {problem}")
    return variant


def experiment_from(args: argparse.Namespace, variants: Sequence[Variant], *, quality: bool) -> Experiment:
    """The request for the engine.

    Raises:
        UsageError: a number is impossible; the message says which and what to give instead.
    """
    kind = args.workload
    if args.prompt is not None and kind == "decode":
        kind = "generate"
    if args.prompt is not None and kind != "generate":
        raise UsageError(f"--prompt needs a workload that generates text, but --workload is {kind}.")
    if args.prompt is not None and not args.prompt.strip():
        raise UsageError("--prompt is empty. Give some text to continue, or leave it out.")
    if args.profile_steps is not None and args.profile_steps < 0:
        raise UsageError(f"--profile-steps is {args.profile_steps}, but it must be 0 or more.")
    if not args.time_limit > 0:
        raise UsageError(f"--time-limit is {args.time_limit:g}, but it must be more than 0 seconds.")
    if args.steps > MOST_STEPS:
        raise UsageError(f"--steps is {args.steps}, but it must be {MOST_STEPS} or less; an interval needs some ten.")
    if not 0 <= args.seed <= _LARGEST_SEED:
        raise UsageError(f"--seed is {args.seed}, but it must be between 0 and {_LARGEST_SEED}.")
    try:
        workload = Workload(
            kind=kind,
            batch=args.batch,
            context=args.context,
            new_tokens=args.new_tokens,
            steps=args.steps,
            seed=args.seed,
            prompt=args.prompt,
        )
        return Experiment(
            model=args.model,
            workload=workload,
            variants=tuple(variants),
            device=args.device,
            profile_steps=args.profile_steps,
            quality=quality,
            time_limit_s=args.time_limit,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _threads_from(text: str, option: str) -> int:
    try:
        threads = int(text)
    except ValueError as error:
        raise UsageError(f"{option}: threads={text} is not a whole number.") from error
    return checked_threads(threads) or 1


def checked_threads(threads: int | None) -> int | None:
    """The number of threads as it was given.

    Raises:
        UsageError: it is impossible.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"threads is {threads}, but it must be between 1 and {MOST_THREADS}.")
    return threads
