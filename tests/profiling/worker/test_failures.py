"""Whatever is raised becomes a failure of the right kind with a sentence a person can act on."""

import errno

import pytest
import torch

from gptscope.models.levers import LeverError
from gptscope.models.loaders import ModelError, OfflineError
from gptscope.profiling.worker.failures import NotEnoughMemoryError, RequestError, failure_of


class InductorError(RuntimeError):
    """Named like the compiler's own, whose import takes seconds."""


def raised(error: Exception) -> Exception:
    """The error with a traceback."""
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ModelError("weights.safetensors is cut off."), "model", "weights.safetensors is cut off."),
        (OfflineError("no network"), "offline", "no network"),
        (LeverError("There is no fusion called 'x'."), "usage", "There is no fusion called 'x'."),
        (RequestError("batch is 0"), "usage", "batch is 0"),
        (ValueError("too many tokens"), "usage", "too many tokens"),
        (NotEnoughMemoryError("needs 25 GB"), "memory", "needs 25 GB"),
        (MemoryError(), "memory", "Memory ran out while measuring"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), "disk", "/tmp/x"),
        (
            type("InductorError", (RuntimeError,), {})("CppCompileError: C++ compile error"),
            "internal",
            "fusion compile",
        ),
        (ImportError("libfoo.so"), "internal", "libfoo.so"),
        (RuntimeError("odd\nthing"), "internal", "RuntimeError: odd."),
        (AssertionError(), "internal", "no message"),
    ],
)
def test_kinds_and_sentences(error: Exception, kind: str, words: str):
    failure = failure_of(raised(error), "measuring", "r")
    assert failure.kind == kind
    assert words in failure.message
    assert failure.run_id == "r"
    assert "Traceback" in failure.detail


def test_torch_running_out_of_memory_is_told_with_the_size():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 50, dtype=torch.uint8)
    failure = failure_of(caught.value, "measuring", None)
    assert failure.kind == "memory"
    assert f"{(1 << 50) / 1e9:.2f} GB" in failure.message


def test_cuda_running_out_of_memory_is_told_with_the_size():
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity ...")
    failure = failure_of(raised(error), "measuring", None)
    assert failure.kind == "memory"
    assert "2.00 GiB" in failure.message
