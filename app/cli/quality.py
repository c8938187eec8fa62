"""`gptscope quality`: what a candidate does to the output, without measuring any speed."""

import argparse
from pathlib import Path

from gptscope.app.cli import options
from gptscope.app.cli.compare import variants_from
from gptscope.profiling.experiment import Experiment, Workload

MOST_KEPT = 1000


class Quality:
    """Compares outputs only: perplexity, divergence, greedy text, and on request every module alone."""

    summary = "compare the outputs of settings; find the modules that hurt, and keep those unquantized"
    examples = """\
A setting is written as for `gptscope compare`. Nothing is timed but the modules of the layer map.

examples:
  gptscope quality --candidate "precision=bf16"
  gptscope quality --candidate "precision=int8-dynamic" --text notes.txt
  gptscope quality --candidate "precision=int8-dynamic,int8-dynamic.granularity=tensor" --layer-map
  gptscope quality --candidate "precision=int8-static" --keep-worst 3
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("variants")
        group.add_argument("--baseline", default="", metavar="SPEC", help="default: the lever options below")
        group.add_argument(
            "--candidate", action="append", default=[], metavar="SPEC", help="repeatable; each against the baseline"
        )
        group = parser.add_argument_group("what to compare")
        group.add_argument("--model", default="bundled", metavar="M", help="as for `gptscope run` (default: bundled)")
        group.add_argument("--device", choices=options.DEVICES, default="auto", help="default: auto")
        group.add_argument(
            "--text", type=Path, metavar="F", help="text file, UTF-8 (default: the evaluation text of gptscope)"
        )
        group.add_argument(
            "--layer-map",
            action="store_true",
            help="find out what each module alone costs in output and saves in time",
        )
        group.add_argument(
            "--keep-worst",
            type=int,
            metavar="K",
            help="leave the K modules that hurt most unquantized, and compare again; implies --layer-map",
        )
        group.add_argument(
            "--workload",
            choices=("decode", "prefill"),
            default="decode",
            help="which step the times of the layer map are those of (default: decode, one token)",
        )
        group.add_argument(
            "--context", type=int, default=Workload().context, metavar="N", help="tokens of a prefill (default: 128)"
        )
        group.add_argument(
            "--time-limit", type=float, default=1800.0, metavar="S", help="stop after S seconds (default: 1800)"
        )
        options.add_lever_options(parser)
        options.add_json_option(parser.add_argument_group("results"))

    def run(self, args: argparse.Namespace) -> int:
        experiment = experiment_from(args)

        from gptscope.app.cli.quality_run import run_quality

        return run_quality(experiment, keep_worst=args.keep_worst, json_target=args.json)


def experiment_from(args: argparse.Namespace) -> Experiment:
    """The request for the engine.

    Raises:
        UsageError: Something in it is impossible.
    """
    if args.keep_worst is not None and not 1 <= args.keep_worst <= MOST_KEPT:
        raise options.UsageError(f"--keep-worst is {args.keep_worst}, but it must be between 1 and {MOST_KEPT}.")
    if args.text is not None and not args.text.is_file():
        raise options.UsageError(f"--text: there is no file {args.text}.")
    if not args.time_limit > 0:
        raise options.UsageError(f"--time-limit is {args.time_limit:g}, but it must be more than 0 seconds.")
    try:
        return Experiment(
            model=args.model,
            workload=Workload(kind=args.workload, context=args.context),
            variants=tuple(variants_from(args)),
            device=args.device,
            quality=True,
            text=None if args.text is None else str(args.text.resolve()),
            layer_map=args.layer_map or args.keep_worst is not None,
            measure=False,
            peaks=False,
            time_limit_s=args.time_limit,
        )
    except ValueError as error:
        raise options.UsageError(str(error)) from error
