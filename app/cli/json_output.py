"""Where `--json` goes, checked before anything runs. With `-` standard output holds JSON only."""

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gptscope.app.cli.console import Console, messages, results
from gptscope.app.cli.failing import USAGE, CommandError

if TYPE_CHECKING:
    from gptscope.profiling.records import Record

STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
FORMAT_VERSION = 1
"""Of every JSON document the command line writes; fields are only added within one version (docs/json.md)."""


class JsonOutput:
    """The target of `--json`."""

    def __init__(self, target: str | None) -> None:
        """Check the target.

        Raises:
            CommandError: it cannot be written.
        """
        self._target = "-" if target in STANDARD_OUTPUT else target
        if target is not None and self._target != "-":
            check_writable(Path(target), "--json")

    def console(self) -> Console:
        """Where people read: standard error when standard output is taken."""
        return messages() if self._target == "-" else results()

    def write(self, kind: str, content: Any, **more: Any) -> None:
        """Write one document: `{"gptscope": kind, "format": 1, ...}` with the fields of `content`.

        Raises:
            CommandError: the disk is full or the file cannot be written.
        """
        if self._target is None:
            return
        data = encode_document(kind, content, **more)
        if self._target == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            from gptscope.profiling.export import ExportError, write_whole

            try:
                write_whole(Path(self._target), [data], overwrite=True)
            except ExportError as error:
                raise CommandError(str(error)) from error

    def write_experiment(
        self, records: "Sequence[Record]", run_ids: Sequence[str], *, kept_in: Path | None, not_kept: str | None = None
    ) -> None:
        """Write some runs of an experiment.

        Raises:
            CommandError: as `write`.
        """
        if self._target is not None:
            from gptscope.app.cli.document import experiment_document

            self.write("experiment", experiment_document(records, run_ids, kept_in=kept_in, not_kept=not_kept))


def encode_document(kind: str, content: Any, **more: Any) -> bytes:
    """The document as indented UTF-8 JSON. Numbers that JSON lacks (NaN, infinity) become null."""
    import msgspec

    fields = msgspec.to_builtins(content)
    fields = fields if isinstance(fields, dict) else {"items": fields}
    fields.pop("type", None)
    document = {"gptscope": kind, "format": FORMAT_VERSION, **fields, **msgspec.to_builtins(more)}
    try:
        encoded = msgspec.json.encode(document)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(_valid_text(document))
    return msgspec.json.format(encoded, indent=2) + b"\n"


def _valid_text(value: Any) -> Any:
    """The same with escapes for bytes of file names that are no text, which JSON cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_valid_text(key): _valid_text(one) for key, one in value.items()}
    return [_valid_text(one) for one in value] if isinstance(value, list) else value


def check_writable(path: Path, option: str) -> None:
    """Refuse a target that cannot be written before any time is spent.

    Raises:
        CommandError: with code 2; the message says why.
    """
    from gptscope.profiling.export.files import final_place, is_written_straight

    try:
        target = final_place(path)
        with contextlib.suppress(FileNotFoundError):
            target.lstat()
    except OSError as error:
        reason = f"{(error.strerror or str(error)).lower()}. Give another place"
        raise CommandError(f"{option} cannot write {path}: {reason}.", code=USAGE) from error
    folder = target.parent
    straight = is_written_straight(target)
    if target.is_dir():
        reason = "it is a folder. Give a file name"
    elif straight and not target.exists():
        reason = "no such descriptor is open. Give another place"
    elif not folder.exists():
        reason = f"the folder {folder} does not exist. Make it first"
    elif not folder.is_dir():
        reason = f"{folder} is not a folder"
    elif target.exists() and not os.access(target, os.W_OK):
        reason = "it is not writable. Give another place"
    elif not straight and not os.access(folder, os.W_OK):
        reason = f"the folder {folder} is not writable. Give another place"
    else:
        return
    raise CommandError(f"{option} cannot write {path}: {reason}.", code=USAGE)
