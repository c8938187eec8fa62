"""`gptscope compare`: measure a baseline and candidates alternately, and judge each candidate."""

import argparse
from pathlib import Path

import msgspec

from gptscope.app.cli import options
from gptscope.profiling.experiment import Variant, variant_name

MOST_CANDIDATES = 15


class Compare:
    """Measures variants against each other and gives a verdict on each candidate."""

    summary = "measure settings against each other, alternately, and judge speed and output"
    examples = """\
A setting is written as key=value pairs with commas: precision, fuse (several with +), kv-cache, pruning,
speculation, model, threads, name, and settings of levers as --option writes them. Keys left out are taken from
--precision, --fuse and so on.

examples:
  gptscope compare --candidate "precision=bf16,fuse=all,kv-cache=static"
  gptscope compare --model preset:gpt2-124m --candidate "precision=bf16" --candidate "fuse=attention+qkv"
  gptscope compare --workload train --baseline "fuse=none" --candidate "fuse=optimizer" --no-quality
  gptscope compare --workload train --baseline "precision=bf16" --candidate "precision=fp8-delayed" --seeds 5
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("variants")
        group.add_argument("--baseline", default="", metavar="SPEC", help="default: the lever options below")
        group.add_argument(
            "--candidate",
            action="append",
            default=[],
            metavar="SPEC",
            help="repeatable; each is judged by the baseline",
        )
        group.add_argument(
            "--no-quality", action="store_true", help="do not compare the outputs, only speed and memory"
        )
        group.add_argument(
            "--text", type=Path, metavar="F", help="text file, UTF-8, to compare outputs on (default: gptscope's own)"
        )
        group.add_argument(
            "--layer-map", action="store_true", help="find out what each module alone costs in output and saves in time"
        )
        group.add_argument(
            "--seeds",
            type=int,
            default=1,
            metavar="N",
            help="train: compare final losses over N seeds (data order, random weights); further ones are not timed",
        )
        options.add_workload_options(parser)
        options.add_lever_options(parser)
        options.add_measuring_options(parser)
        options.add_output_options(parser)

    def run(self, args: argparse.Namespace) -> int:
        if args.text is not None and not args.text.is_file():
            raise options.UsageError(f"--text: there is no file {args.text}.")
        asked = options.experiment_from(args, variants_from(args), quality=not args.no_quality)
        text = None if args.text is None else str(args.text.resolve())
        try:
            experiment = msgspec.structs.replace(asked, text=text, layer_map=args.layer_map, seeds=args.seeds)
        except ValueError as error:
            raise options.UsageError(str(error)) from error

        from gptscope.app.cli.compare_report import print_comparison
        from gptscope.app.cli.measuring import Measuring

        measuring = Measuring(args)
        outcome = measuring.measure(experiment)
        print_comparison(measuring.out, outcome.records, outcome.run_ids)
        return measuring.finish(outcome)


def variants_from(args: argparse.Namespace) -> list[Variant]:
    """Baseline first, then the candidates.

    Raises:
        UsageError: no candidate, too many, or two variants that are the same.
    """
    default = options.variant_from(args)
    if not args.candidate:
        raise options.UsageError(
            f"gptscope {args.command} needs at least one candidate, for example "
            '--candidate "precision=bf16,fuse=all,kv-cache=static".'
        )
    if len(args.candidate) > MOST_CANDIDATES:
        raise options.UsageError(
            f"gptscope {args.command} takes at most {MOST_CANDIDATES} candidates, but got {len(args.candidate)}."
        )
    variants = [options.parse_variant(args.baseline, default, "--baseline")]
    variants += [options.parse_variant(spec, default, "--candidate") for spec in args.candidate]
    seen: set[bytes] = set()
    for variant in variants:
        key = msgspec.json.encode(msgspec.structs.replace(variant, name=""), order="sorted")
        if key in seen:
            raise options.UsageError(
                f"Two variants are the same: {variant_name(variant)}. Change a lever in one of them, or leave it out."
            )
        seen.add(key)
    return variants
