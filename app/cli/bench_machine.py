"""`gptscope bench-machine`: measure, or show, what this machine can do at most."""

import argparse

from gptscope.app.cli.options import DEVICES, add_json_option, checked_threads


class BenchMachine:
    """Measures read, copy and matrix product ceilings, and keeps them."""

    summary = "measure this machine's memory bandwidth and matrix product ceilings"
    examples = "example:\n  gptscope bench-machine --fresh"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--fresh", action="store_true", help="measure again instead of showing what is kept")
        parser.add_argument("--device", choices=DEVICES, default="auto", help="default: auto")
        parser.add_argument("--threads", type=int, metavar="N", help="kernel threads (default: one per physical core)")
        add_json_option(parser)

    def run(self, args: argparse.Namespace) -> int:
        checked_threads(args.threads)
        from gptscope.app.cli import console
        from gptscope.app.cli.json_output import JsonOutput
        from gptscope.app.cli.machine_report import print_peaks
        from gptscope.app.cli.progress import progress_view
        from gptscope.app.cli.session import ask
        from gptscope.profiling.records import MeasurePeaks, Peaks

        output = JsonOutput(args.json)
        view = progress_view(console.messages())
        peaks = ask(MeasurePeaks(device=args.device, threads=args.threads, fresh=args.fresh), Peaks, view)
        print_peaks(output.console(), peaks)
        output.write("peaks", peaks)
        return 0
