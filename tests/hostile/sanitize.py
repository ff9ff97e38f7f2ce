"""The compiled kernels under AddressSanitizer and UndefinedBehaviorSanitizer: their tests, and hostile calls.

    PYTHONPATH=tests python -m hostile.sanitize --tries 10000

Kernels are built for it in a temporary folder; those that are installed stay as they are. It takes Linux, gcc and
pybind11. Whatever a sanitizer reports is a failure.

As a plugin of pytest, `-p hostile.sanitize`, this module puts the kernels of the folder `HOSTILE_KERNELS` in the place
of the installed ones.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import st_paragram.core.native as native

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = "HOSTILE_KERNELS"
_FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1"
_TESTS = (
    "tests/core/native",
    "tests/learning/training/test_compiled_step.py",
    "tests/learning/losses",
    "tests/core/tokenizers/test_word_cache.py",
    "tests/learning/modules",
)
# Compiled so, the loops add up in another order: where a test bounds rounding, two cases come out just beyond.
_ROUNDING = [
    f"--deselect=tests/learning/training/test_compiled_step.py::test_equals_torch[{threads}-130]" for threads in (1, 2)
]
# What these test is the end of memory, which the sanitizer's own would meet first, or a process without its libraries.
_LEFT_OUT = "not memory and not started_are and not pool_of_its_own"

if folder := os.environ.get(_FOLDER):
    native.__path__.insert(0, folder)


def build(folder: Path) -> Path:
    """Build kernels with sanitizers; returns the folder of the module."""
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", folder, "--build-temp", folder / "objects"]
    flags = {name: f"{os.environ.get(name, '')} {_FLAGS}".strip() for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS")}
    subprocess.run(command, cwd=_ROOT, env={**os.environ, **flags}, check=True, stdout=subprocess.DEVNULL)
    if not (built := list(folder.glob("st_paragram/core/native/_kernels*"))):
        raise SystemExit("the kernels could not be built; install a C++ compiler and pybind11")
    return built[0].parent


def environment(kernels: Path, reports: Path) -> dict[str, str]:
    """Variables of a process that loads those kernels: Python itself knows of no sanitizer, so they come first."""
    libraries = [_library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so.6")]
    options = f"log_path={reports / 'report'}:print_stacktrace=1:halt_on_error=1"
    return {
        **os.environ,
        _FOLDER: str(kernels),
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": f"{options}:detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": options,
        "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tests"), os.environ.get("PYTHONPATH", "")]),
    }


def _library(name: str) -> str:
    """The path of one of the compiler's libraries."""
    command = [os.environ.get("CC", "gcc"), f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str] | None = None) -> int:
    """Build, test, and call with hostile arguments; 1 if there was a report, or a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=10_000, help="hostile calls")
    parser.add_argument("--no-tests", action="store_true", help="hostile calls only")
    parser.add_argument("--kernels", type=Path, metavar="DIR", help="a folder of kernels that were built so before")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sanitize-") as name:
        folder = Path(name)
        variables = environment(given.kernels or build(folder), folder)
        runs = [["-m", "hostile.sanitize_calls", "kernels", str(given.tries)]]
        runs.append(["-m", "hostile.sanitize_calls", "segmentation", str(given.tries // 5)])
        if not given.no_tests:
            runs.append(["-m", "hostile.sanitize_calls", "optimizer_state", str(given.tries // 20)])
            runs.append(
                [
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "hostile.sanitize",
                    "-p",
                    "no:cacheprovider",
                    "-k",
                    _LEFT_OUT,
                    *_ROUNDING,
                    *_TESTS,
                ]
            )
        failed = sum(subprocess.run([sys.executable, *run], cwd=_ROOT, env=variables).returncode != 0 for run in runs)
        said = [path.read_text(errors="replace") for path in sorted(folder.glob("report*"))]
    reports = [text for text in said if "ERROR:" in text or "runtime error:" in text]  # others warn of huge sizes
    print("\n".join(text[:5000] for text in reports))
    print(f"{len(runs)} runs, {failed} of which failed (see above); {len(reports)} reports of sanitizers in files")
    return int(bool(failed or reports))


if __name__ == "__main__":
    raise SystemExit(main())
