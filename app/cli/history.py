"""`gptscope history`: the kept runs: list, show, export, tag, delete and bring back."""

import argparse
from typing import TYPE_CHECKING

from gptscope.app.cli.options import UsageError, add_file_options, add_json_option, add_library_options

if TYPE_CHECKING:
    from gptscope.profiling.store.library import Library

_RUN_HELP = "a run's id or how it begins, or `last`"


class History:
    """Works on the library of runs."""

    summary = "list, show, export, tag or delete kept runs"
    examples = """\
examples:
  gptscope history list                       newest first; words after it search: list bf16 decode
  gptscope history show last
  gptscope history export last --trace trace.json.gz --csv kernels.csv --json run.json
  gptscope history tag last paper final
  gptscope history delete RUN                 undelete brings it back for 30 days
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        show_all = actions.add_parser("list", help="kept runs, newest first")
        show_all.add_argument("words", nargs="*", metavar="WORD", help="only runs that hold all these words")
        show_all.add_argument("--tag", metavar="TAG", help="only runs with this tag")
        show_all.add_argument("--deleted", action="store_true", help="the deleted runs instead")
        show = actions.add_parser("show", help="what `run` printed")
        show.add_argument("run", metavar="RUN", help=_RUN_HELP)
        show.add_argument("--experiment", action="store_true", help="its whole experiment, as `compare` printed it")
        export = actions.add_parser("export", help="write a run as JSON, trace or CSV")
        export.add_argument("run", metavar="RUN", help=_RUN_HELP)
        add_file_options(export)
        tag = actions.add_parser("tag", help="add tags to a run, or take them away")
        tag.add_argument("run", metavar="RUN", help=_RUN_HELP)
        tag.add_argument("tags", nargs="*", metavar="TAG")
        tag.add_argument("--remove", action="append", default=[], metavar="TAG", help="take this tag away")
        tag.add_argument("--notes", metavar="TEXT", help="replace the run's notes")
        delete = actions.add_parser("delete", help="hide runs; they can be brought back for 30 days")
        delete.add_argument("--for-good", action="store_true", help="remove records and traces at once")
        undelete = actions.add_parser("undelete", help="bring deleted runs back")
        for several in (delete, undelete):
            several.add_argument("runs", nargs="+", metavar="RUN", help=_RUN_HELP)
        for action in (show_all, show, export):
            add_json_option(action)
        for action in (show_all, show, export, tag, delete, undelete):
            add_library_options(action)

    def run(self, args: argparse.Namespace) -> int:
        from gptscope.app.cli.console import messages
        from gptscope.app.cli.failing import CommandError
        from gptscope.app.cli.keeping import open_library
        from gptscope.profiling.store.entries import LibraryError

        actions = {
            "list": _list,
            "show": _show,
            "export": _export,
            "tag": _tag,
            "delete": _delete,
            "undelete": _undelete,
        }
        with open_library(args.library) as library:
            for notice in library.notices:
                messages().line(notice, "warn")
            try:
                actions[args.action](args, library)
            except LibraryError as error:
                raise CommandError(str(error)) from error
        return 0


def _list(args: argparse.Namespace, library: "Library") -> None:
    from gptscope.app.cli.history_report import list_document, print_list
    from gptscope.app.cli.json_output import JsonOutput

    output = JsonOutput(args.json)
    entries = library.list_runs(" ".join(args.words), tag=args.tag, deleted=args.deleted)
    print_list(output.console(), entries, library, searched=bool(args.words or args.tag), deleted=args.deleted)
    output.write("history", {"library": str(library.folder), "runs": list_document(entries)})


def _show(args: argparse.Namespace, library: "Library") -> None:
    from gptscope.app.cli.compare_report import print_comparison
    from gptscope.app.cli.history_report import experiment_runs, print_entry
    from gptscope.app.cli.json_output import JsonOutput

    output = JsonOutput(args.json)
    entry = library.find(args.run)
    records = list(library.open_experiment(entry.experiment_id))
    run_ids = experiment_runs(records) if args.experiment else (entry.run_id,)
    if len(run_ids) > 1:
        print_comparison(output.console(), records, run_ids)
    else:
        print_entry(output.console(), entry, records)
    output.write_experiment(records, run_ids, kept_in=library.folder)


def _export(args: argparse.Namespace, library: "Library") -> None:
    from gptscope.app.cli.failing import CommandError
    from gptscope.app.cli.files import FileOutput, copy_trace
    from gptscope.app.cli.json_output import JsonOutput

    if args.json is None and args.trace is None and args.csv is None:
        raise UsageError("history export needs at least one of --json F, --trace F, --csv F.")
    output, csv = JsonOutput(args.json), FileOutput(args.csv)
    entry = library.find(args.run)
    written = [] if args.trace is None else [copy_trace(entry, args.trace)]
    records = list(library.open_experiment(entry.experiment_id))
    tables, failed = csv.write(records, (entry.run_id,))
    output.write_experiment(records, (entry.run_id,), kept_in=library.folder)
    for path in written + tables:
        output.console().line(f"Written: {path}")
    if failed:
        raise CommandError(" ".join(failed))


def _tag(args: argparse.Namespace, library: "Library") -> None:
    from gptscope.app.cli.console import results

    if not args.tags and not args.remove and args.notes is None:
        raise UsageError("history tag needs tags to add, --remove TAG or --notes TEXT.")
    entry = library.find(args.run)
    if args.tags or args.remove:
        entry = library.set_tags(entry.run_id, [tag for tag in (*entry.tags, *args.tags) if tag not in args.remove])
    if args.notes is not None:
        entry = library.set_notes(entry.run_id, args.notes)
    results().line(f"{entry.run_id}: tags {', '.join(entry.tags) or 'none'}; notes: {entry.notes or 'none'}")


def _delete(args: argparse.Namespace, library: "Library") -> None:
    from gptscope.app.cli.console import results

    entries = [library.find(run) for run in args.runs]  # all or none: a wrong id deletes nothing
    for entry in entries:
        library.delete(entry.run_id)
    names = " ".join(entry.run_id for entry in entries)
    if args.for_good:
        library.purge([entry.run_id for entry in entries])
        results().line(f"Removed for good: {names}")
    else:
        results().line(f"Deleted: {names}. `gptscope history undelete {names}` brings it back.")


def _undelete(args: argparse.Namespace, library: "Library") -> None:
    from gptscope.app.cli.console import results

    for entry in [library.find(run) for run in args.runs]:
        library.undelete(entry.run_id)
        results().line(f"Back: {entry.run_id} ({entry.name})")
