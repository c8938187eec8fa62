"""Is there a C++ compiler that torch.compile can use? Found out by compiling a small library. Needs no torch."""

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from gptscope.profiling.temp_folders import temporary_folder

_COMPILE_TIMEOUT_S = 60.0

# What torch.compile's C++ kernels need: a shared library with OpenMP and Python's own headers.
_TRIAL_SOURCE = """\
#include <Python.h>
#include <omp.h>
#include <cmath>
extern "C" float gptscope_trial(const float* x, long n) {
    float sum = 0.0f;
    #pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; ++i) sum += std::sqrt(x[i]);
    return sum + static_cast<float>(omp_get_max_threads());
}
"""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler that was tried, or why there is none."""

    path: str | None
    reason: str | None


@functools.cache
def find_compiler() -> Compiler:
    """Find the C++ compiler that torch.compile would use and compile a trial library with it."""
    wanted = os.environ.get("CXX") or {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    path = shutil.which(wanted)
    if path is None:
        return Compiler(None, f"No C++ compiler: {wanted!r} is not on the PATH. {_INSTALL_HINT}")
    try:
        done = _compile_trial(path)
    except (OSError, subprocess.SubprocessError) as error:
        return Compiler(None, f"The C++ compiler {path} could not be tried: {error}")
    if done.returncode != 0:
        said = next(
            (line for line in (done.stderr + done.stdout).splitlines() if "error" in line.lower()), "no message"
        )
        return Compiler(None, f"The C++ compiler {path} cannot build a small library: {said.strip()}. {_INSTALL_HINT}")
    return Compiler(path, None)


def _compile_trial(path: str) -> subprocess.CompletedProcess[str]:
    with temporary_folder() as folder:
        source = folder / "trial.cpp"
        source.write_text(_TRIAL_SOURCE, encoding="ascii")
        return subprocess.run(
            _compile_command(path, source), cwd=folder, env={**os.environ, "TMPDIR": str(folder)},
            capture_output=True, text=True,
            errors="replace", timeout=_COMPILE_TIMEOUT_S, check=False,
        )  # fmt: skip


_INSTALL_HINT = {
    "darwin": "Install Xcode's command line tools and libomp.",
    "win32": "Install Visual Studio's C++ build tools and start from their prompt.",
}.get(sys.platform, "On Debian or Ubuntu install g++ and python3-dev.")


def _compile_command(path: str, source: Path) -> list[str]:
    include = sysconfig.get_paths()["include"]
    if sys.platform == "win32":
        return [
            path,
            "/nologo",
            "/LD",
            "/openmp",
            f"/I{include}",
            str(source),
            "/link",
            f"/LIBPATH:{sys.base_prefix}/libs",
        ]
    command = [path, "-shared", "-fPIC", "-O1", "-std=c++17", f"-I{include}", str(source), "-o", "trial.so"]
    if sys.platform == "darwin":  # Python's symbols come from the process that loads the library
        return [*command, "-Xclang", "-fopenmp", "-undefined", "dynamic_lookup"]
    return [*command, "-fopenmp"]
