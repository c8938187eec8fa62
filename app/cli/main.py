"""The parser, and the way from a command to an exit code: 0 good, 1 failed with a sentence, 2 usage."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from gptscope.app.cli.commands import COMMANDS
from gptscope.app.cli.failing import FAILED, GOOD, USAGE, CommandError
from gptscope.app.cli.options import UsageError

_DESCRIPTION = "Profile GPT models: switch precision, fusions and KV caching, and see speed, cause and output change."
_EPILOG = """\
Without a command gptscope opens its window.

examples:
  gptscope demo                                        what the levers do, on a model that comes along
  gptscope run --model preset:gpt2-124m --precision bf16 --fuse all
  gptscope compare --candidate "precision=bf16" --candidate "precision=bf16,fuse=all,kv-cache=static"
  gptscope doctor                                      what this machine can do, and why not more

exit codes: 0 good, 1 failed or stopped (one sentence says why), 2 wrong usage
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
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
        command.add_arguments(sub)
    return parser


def run_command(arguments: Sequence[str]) -> int:
    """Parse, run, and turn every way to fail into a sentence and an exit code."""
    parser = build_parser()
    args = parser.parse_args(arguments)
    if args.command is None:
        parser.error("give a command")
    try:
        code = COMMANDS[args.command].run(args)
        sys.stdout.flush()
    except UsageError as error:
        return _fail(args, error, USAGE)
    except CommandError as error:
        return _fail(args, error, error.code, error.detail)
    except KeyboardInterrupt as error:
        return _fail(args, error, FAILED, sentence="Stopped.")
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:  # noqa: BLE001  (a fault of ours: told in a sentence, with the way to see more)
        sentence = f"gptscope met a fault of its own: {type(error).__name__}: {error}. --debug shows where."
        return _fail(args, error, FAILED, sentence=sentence)
    return code


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
    return code


def _reader_left() -> int:
    """Whoever read our output has closed it (`| head`): not a failure, and nothing more to say."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())  # so that Python's own flush at exit does not fail again
    os.close(devnull)
    return GOOD
