"""From an exception to a `Failure`: of the right kind, in a sentence, with the traceback for the details view."""

import errno
import os
import re
import traceback

from gptscope.profiling.records import Failure, FailureKind

_DISK_ERRORS = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_DISK_WORDS = {os.strerror(code) for code in _DISK_ERRORS}
_ALLOCATION = re.compile(r"[Tt]ried to allocate ([\d.]+) ?(\w*)")
_COMPILE_ERRORS = {
    "BackendCompilerFailed",
    "InductorError",
    "CppCompileError",
    "InvalidCxxCompiler",
    "TorchDynamoException",
}
_REPORT = "This is a fault in gptscope or in a library; please report it with the details."


class NotEnoughMemoryError(MemoryError):
    """Estimated before it happens: the model does not fit. The message has the numbers."""


class RequestError(ValueError):
    """A request that cannot be run as asked. The message says what, why and what to do."""


def failure_of(error: BaseException, doing: str, run_id: str | None) -> Failure:
    """Describe what went wrong.

    Args:
        error: What was raised.
        doing: What the worker did, e.g. `loading bundled`.
        run_id: The run it belongs to.
    """
    kind, message = _classify(error, doing)
    detail = "".join(traceback.format_exception(error))
    return Failure(kind=kind, message=message, detail=detail, run_id=run_id)


def _classify(error: BaseException, doing: str) -> tuple[FailureKind, str]:
    names = {kind.__name__ for kind in type(error).__mro__}
    # The model classes are told by name: this file must also work when torch, which they need, cannot be imported.
    if "OfflineError" in names:
        return "offline", str(error)
    if "ModelError" in names:
        return "model", str(error)
    if isinstance(error, NotEnoughMemoryError):
        return "memory", str(error)
    if _is_out_of_memory(error, names):
        return "memory", _memory_message(error, doing)
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        where = f" for {error.filename}" if error.filename else ""
        said = "" if error.strerror in _DISK_WORDS else f": {error.strerror}"
        return "disk", f"No space is left on the disk{where} ({doing}){said}. Free some space and run again; {_KEPT}."
    if isinstance(error, ValueError):
        return "usage", str(error)
    if names & _COMPILE_ERRORS:
        return "internal", f"torch.compile failed while {doing}: {_first_line(error)}. Run without the fusion compile."
    if isinstance(error, ImportError):
        return "internal", f"A needed package cannot be loaded ({doing}): {error}. Run `gptscope doctor`."
    return "internal", f"Something failed while {doing}: {type(error).__name__}: {_first_line(error)}. {_REPORT}"


_KEPT = "what was measured so far is kept"


def _is_out_of_memory(error: BaseException, names: set[str]) -> bool:
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
        return True
    # torch's CPU allocator raises a plain RuntimeError.
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in str(error) or "not enough memory" in str(error)
    )


def _memory_message(error: BaseException, doing: str) -> str:
    found = _ALLOCATION.search(str(error))
    amount = ""
    if found:
        unit = found[2]
        amount = f" (a tensor of {float(found[1]) / 1e9:.2f} GB)" if unit in ("", "bytes") else f" ({found[1]} {unit})"
    return (
        f"Memory ran out while {doing}{amount}. Use a smaller batch, context or model, or a 16-bit precision; {_KEPT}."
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no message"
