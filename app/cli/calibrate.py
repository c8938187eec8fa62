"""`gptscope calibrate`: measure once how large a model's activations get, for INT8 recipes with fixed scales."""

import argparse
from pathlib import Path

from gptscope.app.cli.options import add_json_option


class CalibrateCommand:
    """Writes the ranges of activations to a file."""

    summary = "measure the ranges of a model's activations, for INT8 with fixed scales"
    examples = (
        "examples:\n  gptscope calibrate --model smollm2-135m --out ranges.json\n"
        "  gptscope calibrate --model ./my-model --recipe int8-smoothquant --text notes.txt --out ranges.json\n"
        "  gptscope run --precision int8-static --option int8-static.ranges=ranges.json"
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--model", default="bundled", metavar="MODEL", help="as for `run` (default: bundled)")
        parser.add_argument(
            "--recipe",
            default="int8-static",
            metavar="P",
            help="which will use the ranges: int8-static or int8-smoothquant (default: int8-static)",
        )
        parser.add_argument("--text", type=Path, metavar="FILE", help="text to read (default: gptscope's own)")
        parser.add_argument(
            "--out", type=Path, metavar="FILE", help="JSON file to write (default: one in the user's data folder)"
        )
        parser.add_argument("--threads", type=int, metavar="N", help="kernel threads (default: one per physical core)")
        add_json_option(parser)

    def run(self, args: argparse.Namespace) -> int:
        from gptscope.app.cli import console
        from gptscope.app.cli.json_output import JsonOutput
        from gptscope.app.cli.progress import progress_view
        from gptscope.app.cli.session import ask
        from gptscope.profiling.records import Calibrate, Calibrated

        output = JsonOutput(args.json)
        question = Calibrate(
            model=args.model,
            recipe=args.recipe,
            text="" if args.text is None else str(args.text.absolute()),
            out="" if args.out is None else str(args.out.absolute()),
            threads=args.threads,
        )
        found = ask(question, Calibrated, progress_view(console.messages()))
        out = output.console()
        out.line(f"{found.inputs} inputs of layers were measured on {found.tokens} tokens of {found.source}.")
        out.line(f"--precision {found.recipe} --option {found.recipe}.ranges={found.path} uses them.")
        output.write("calibrated", found)
        return 0
