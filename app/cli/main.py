"""The parser, and the way from a command to an exit code: 0 good, 1 failed with a sentence, 2 usage."""

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from gptscope.app.cli.commands import COMMANDS
from gptscope.app.cli.failing import FAILED, GOOD, USAGE, CommandError
from gptscope.app.cli.names import Parser
from gptscope.app.cli.options import UsageError

_DESCRIPTION = "Profile GPT models: switch precision, fusions and KV caching, and see speed, cause and output change."
_EPILOG = """\
Without a command gptscope opens its window.

examples:
  gptscope demo                                        what the levers do, on a model that comes along
  gptscope run --model preset:gpt2-124m --precision bf16 --fuse all
  gptscope compare --candidate "precision=bf16" --candidate "precision=bf16,fuse=all,kv-cache=static"
  gptscope doctor                                      what this machine can do, and why not more
  gptscope trace.json.gz                               any trace, in the window
  gptscope trace summary trace.json.gz                 the same in the terminal

exit codes: 0 good, 1 failed or stopped (one sentence says why), 2 wrong usage
"""

_MORE_ROOM = "Free some space, or choose another place."
_USERS_ERRORS = {
    errno.ENOSPC: _MORE_ROOM,
    errno.EDQUOT: _MORE_ROOM,
    errno.EFBIG: _MORE_ROOM,
    errno.EIO: "The disk or the terminal may be gone.",
    errno.EBADF: "Standard output may be closed.",
    errno.ENAMETOOLONG: "Give a shorter name.",
    errno.ENOMEM: "Close other programs.",
}


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = Parser(
        prog="gptscope", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"gptscope {version('gptscope')}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks and the engine's own messages")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary,
            epilog=command.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        sub.set_defaults(parser=sub)
        command.add_arguments(sub)
    return parser


def run_command(arguments: Sequence[str]) -> int:
    """Parse, run, and turn every way to fail into a sentence and an exit code."""
    parser = build_parser()
    args, unknown = parser.parse_known_args(arguments)
    if args.command is None:
        parser.error("give a command")
    if unknown:  # told with the command's own usage, which has the options that were meant
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        code = _run(args)
    except UsageError as error:
        return _fail(args, error, USAGE)
    except CommandError as error:
        return _fail(args, error, error.code, error.detail)
    except KeyboardInterrupt as error:
        return _fail(args, error, FAILED, sentence="Stopped.")
    except BrokenPipeError:
        return _reader_left()
    except MemoryError as error:
        return _fail(args, error, FAILED, sentence="There is not enough memory for this. Close other programs.")
    except OSError as error:
        return _fail(args, error, FAILED, sentence=_refused(error))
    except Exception as error:  # noqa: BLE001  (a fault of ours: told in a sentence, with the way to see more)
        return _fail(args, error, FAILED, sentence=_own_fault(error))
    return code


def _run(args: argparse.Namespace) -> int:
    output = sys.stdout
    if output is None:
        if args.command == "gui":
            return COMMANDS[args.command].run(args)
        raise CommandError("Standard output is closed. Leave it open, or send it to a file.")
    code = COMMANDS[args.command].run(args)
    output.flush()
    return code


def _own_fault(error: Exception) -> str:
    return f"gptscope met a fault of its own: {type(error).__name__}: {error}. --debug shows where."


def _refused(error: OSError) -> str:
    """What the system refused, where that is for the user to mend."""
    if error.errno not in _USERS_ERRORS:
        return _own_fault(error)
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror}{where}. {_USERS_ERRORS[error.errno]}"


def _fail(args: argparse.Namespace, error: BaseException, code: int, detail: str = "", sentence: str = "") -> int:
    """Tell the sentence on standard error; with `--debug` the detail and the traceback too."""
    from gptscope.app.cli.console import messages

    with contextlib.suppress(BrokenPipeError):
        if args.debug:
            import traceback

            traceback.print_exception(error)
            if detail:
                print(detail, file=sys.stderr)
        messages().line(f"gptscope: {sentence or error}", "bad")
    _drop_output()
    return code


def _drop_output() -> None:
    """What standard output no longer takes is let go, so that Python's own flush at exit does not fail again."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        _to_nowhere()


def _reader_left() -> int:
    """Whoever read our output has closed it (`| head`): not a failure, and nothing more to say."""
    _to_nowhere()
    return GOOD


def _to_nowhere() -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())  # so that Python's own flush at exit does not fail again
    os.close(devnull)
