"""`gptscope doctor`: what this machine offers, and why not more."""

import argparse

from gptscope.app.cli.options import DEVICES, add_json_option, add_library_options


class Doctor:
    """Versions, processor, GPU, compiler, library, and every lever with its reason."""

    summary = "show versions, processor, GPU, compiler, library, and why a lever is unavailable"
    examples = "examples:\n  gptscope doctor\n  gptscope doctor --json -"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--device", choices=DEVICES, default="auto", help="default: auto")
        add_library_options(parser)
        add_json_option(parser)

    def run(self, args: argparse.Namespace) -> int:
        from gptscope.app.cli import console
        from gptscope.app.cli.failing import CommandError
        from gptscope.app.cli.json_output import JsonOutput
        from gptscope.app.cli.library_report import describe_library
        from gptscope.app.cli.machine_report import print_levers, print_machine, print_versions
        from gptscope.app.cli.progress import progress_view
        from gptscope.app.cli.session import ask
        from gptscope.profiling.records import AskCapabilities, Capabilities

        output = JsonOutput(args.json)
        out = output.console()
        library = describe_library(args.library)
        failure: CommandError | None = None
        try:
            found = ask(AskCapabilities(device=args.device), Capabilities, progress_view(console.messages()))
        except CommandError as error:  # still tell what is known without the engine
            failure = error
        else:
            print_machine(out, found.machine)
            out.line()
            print_versions(out, found.versions)
            out.line()
        out.pairs(library.pairs(), "Library of runs")
        if failure is not None:
            raise failure
        out.line()
        print_levers(out, found.levers)
        output.write("doctor", found, library=library)
        return 0
