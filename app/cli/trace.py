"""`gptscope trace`: any profiler's trace: summary, tables, timeline, comparison, export, health."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gptscope.app.cli.names import did_you_mean
from gptscope.app.cli.options import UsageError, add_json_option, add_library_options

if TYPE_CHECKING:
    from gptscope.app.cli.json_output import JsonOutput
    from gptscope.profiling.trace.analysis import Linked

DIFFERENCE = "difference"
"""The one table that needs a second trace."""
_WITH_TABLES = ("csv", "npz")
LEVELS = ("kernel", "category", "operator", "module", "step")
_FILE_HELP = "a Kineto or Chrome trace: JSON, gzipped or zipped, whatever its name; or a kept run: its id or `last`"


class TraceCommand:
    """Works on trace files; nothing of torch is needed."""

    summary = "look at, compare and export profiler traces"
    examples = """\
examples:
  gptscope trace summary trace.json.gz             what the time went to, and advice
  gptscope trace summary last                      the same of the newest kept run
  gptscope trace kernels trace.json.gz --top 30
  gptscope trace operators trace.json.gz --by-shape
  gptscope trace timeline trace.json.gz --range 100:120     milliseconds from the beginning
  gptscope trace diff before.json.gz after.json.gz --by module
  gptscope trace export trace.json.gz --to chrome --output perfetto.json.gz
  gptscope trace export trace.json.gz --to csv --table operators --output operators.csv
  gptscope trace export before.json.gz --against after.json.gz --to csv --output difference.csv
  gptscope trace health trace.json.gz              what is damaged, missing or suspicious
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        several = {
            "summary": actions.add_parser("summary", help="times, devices, biggest kernels, advice"),
            "kernels": actions.add_parser("kernels", help="kernels by time; on a CPU operators by their own time"),
            "operators": actions.add_parser("operators", help="operators with host and device time"),
            "modules": actions.add_parser("modules", help="modules with host and device time"),
            "timeline": actions.add_parser("timeline", help="tracks over time, drawn with characters, and the steps"),
            "health": actions.add_parser("health", help="what is damaged, missing or suspicious"),
        }
        for action in several.values():
            action.add_argument("files", nargs="+", type=Path, metavar="FILE", help=_FILE_HELP)
        for name in ("summary", "kernels", "operators", "modules"):
            several[name].add_argument("--top", type=_rows, default=15, metavar="N",
                                       help="rows to print, 0 for all (default 15)")  # fmt: skip
        several["operators"].add_argument("--by-shape", action="store_true", help="one row per input shapes")
        several["modules"].add_argument("--layers", action="store_true", help="one row per layer")
        diff = actions.add_parser("diff", help="two traces side by side, biggest changes first")
        diff.add_argument("before", type=Path, metavar="BEFORE", help=_FILE_HELP)
        diff.add_argument("after", type=Path, metavar="AFTER")
        diff.add_argument("--by", choices=LEVELS, default="kernel", help="what is compared (default kernel)")
        diff.add_argument("--top", type=_rows, default=20, metavar="N",
                          help="rows to print, 0 for all (default 20)")  # fmt: skip
        export = actions.add_parser("export", help="write a trace in another form")
        export.add_argument("files", nargs=1, type=Path, metavar="FILE", help=_FILE_HELP)
        export.add_argument("--to", required=True, metavar="FORMAT", help="chrome, tensorboard, csv, npz, speedscope,"
                            " folded, markdown")  # fmt: skip
        export.add_argument("--output", required=True, type=Path, metavar="F", help="file, or folder for tensorboard")
        export.add_argument("--table", metavar="T", help="for csv and npz: kernels (default), operators, modules,"
                            " steps, devices, gaps, advice, health, difference, events, ...")  # fmt: skip
        export.add_argument("--against", type=Path, metavar="AFTER", help="for the table difference: the other trace")
        export.add_argument("--by", choices=LEVELS, help="for the table difference: what is compared (default kernel)")
        for action in (*several.values(), export):
            action.add_argument("--range", metavar="A:B", help="only this time, in milliseconds from the beginning;"
                                " either may be left out")  # fmt: skip
        for action in (*several.values(), diff, export):
            action.set_defaults(parser=action)
            add_json_option(action)
            add_library_options(action)

    def run(self, args: argparse.Namespace) -> int:
        from gptscope.app.cli.json_output import JsonOutput
        from gptscope.app.cli.trace_files import trace_file
        from gptscope.app.cli.trace_opening import open_linked, parse_range

        args.range_ms = parse_range(getattr(args, "range", None))
        output = JsonOutput(args.json)
        for name in {"diff": ("before", "after"), "export": ("against",)}.get(args.action, ()):
            if getattr(args, name) is not None:
                setattr(args, name, trace_file(getattr(args, name), args.library))
        if args.action == "export":
            args.files = [trace_file(path, args.library) for path in args.files]
        if args.action == "diff":
            from gptscope.app.cli.trace_diff import print_diff

            before, after = ((path, open_linked(path, None)) for path in (args.before, args.after))
            print_diff(output, before, after, args.by, args.top)
        elif args.action == "export":
            _export(args, output)
        else:
            return _show(args, output)
        return 0


def _rows(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} rows cannot be printed: give 1 or more, or 0 for all")
    return int(text) or sys.maxsize


def _show(args: argparse.Namespace, output: "JsonOutput") -> int:
    """Show each file; of several those that cannot be read are named, and the others shown all the same."""
    from gptscope.app.cli.console import messages
    from gptscope.app.cli.failing import FAILED, GOOD, CommandError
    from gptscope.app.cli.trace_files import trace_file
    from gptscope.app.cli.trace_opening import open_linked
    from gptscope.app.cli.trace_report import ACTIONS

    documents: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    for given in args.files:
        try:
            path = trace_file(given, args.library)
            documents.append(ACTIONS[args.action](output.console(), path, open_linked(path, args.range_ms), args))
        except CommandError as error:
            if len(args.files) == 1:
                raise
            which = "" if str(given) in str(error) else f"{given}: "  # several may have one name
            messages().line(f"gptscope: {which}{error}", "bad")
            failed.append({"file": str(given), "reason": str(error)})
    output.write(f"trace-{args.action}", {"files": documents, "failed": failed})
    return FAILED if failed else GOOD


def _export(args: argparse.Namespace, output: "JsonOutput") -> None:
    from gptscope.app.cli.console import messages
    from gptscope.app.cli.failing import CommandError
    from gptscope.app.cli.json_output import STANDARD_OUTPUT, check_writable
    from gptscope.app.cli.trace_opening import open_linked
    from gptscope.profiling.export import ExportError
    from gptscope.profiling.export.trace_formats import TRACE_FORMATS
    from gptscope.profiling.export.trace_tables import TABLE_NAMES

    form = TRACE_FORMATS.get(args.to)
    if form is None:
        known = "\n".join(f"  {name:<12} {one.summary}" for name, one in TRACE_FORMATS.items())
        raise UsageError(f"There is no format {args.to}.{did_you_mean(args.to, [*TRACE_FORMATS])} There are:\n{known}")
    path = args.files[0]
    compares = args.against is not None or args.table == DIFFERENCE
    if compares:
        _check_difference(args)
    elif args.by is not None:
        raise UsageError(
            "--by is for the table difference: name the other trace with --against AFTER, or leave it out."
        )
    if args.table is not None and args.to not in _WITH_TABLES:
        raise UsageError(f"--table is for csv and npz; {args.to} has no tables. Leave it out, or give --to csv.")
    if args.table is not None and args.table not in (*TABLE_NAMES, DIFFERENCE):
        guess = did_you_mean(args.table, TABLE_NAMES)
        raise UsageError(f"There is no table {args.table!r}.{guess} There are {', '.join(TABLE_NAMES)}.")
    if form.ending:
        check_writable(args.output, "--output")
    linked = open_linked(path, args.range_ms)
    try:
        if compares:
            written = _export_difference(args, linked)
        else:
            written = form.write(linked, path.name.partition(".")[0] or "trace", args.output, args.table or "kernels")
    except ExportError as error:
        raise CommandError(str(error)) from error
    console = messages() if str(args.output) in STANDARD_OUTPUT else output.console()
    console.line(f"Written: {written}")
    output.write("trace-export", {"file": str(path), "format": args.to, "written": str(written)})


def _check_difference(args: argparse.Namespace) -> None:
    if args.against is None:
        raise UsageError("The table difference needs another trace: name it with --against AFTER.")
    if args.table not in {None, DIFFERENCE}:
        raise UsageError(f"--against is for the table difference, not for {args.table}: leave one of them out.")
    if args.to not in _WITH_TABLES:
        raise UsageError(f"A difference is written as csv or npz, not as {args.to}.")


def _export_difference(args: argparse.Namespace, before: "Linked") -> Path:
    from gptscope.app.cli.trace_opening import open_linked
    from gptscope.profiling.export.trace_tables import export_difference
    from gptscope.profiling.trace.analysis import diff_traces

    diff = diff_traces(before, open_linked(args.against, args.range_ms), args.by or "kernel")
    return export_difference(diff, args.to, args.output, overwrite=True)
