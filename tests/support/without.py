"""Run Python in a process that cannot import some packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: What encoding, and all that is done with it, must not need.
HEAVY = (
    "torch",
    "sentence_transformers",
    "transformers",
    "accelerate",
    "datasets",
    "scipy",
    "h5py",
)

_BLOCK = """
import importlib.util
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ImportError(name + " is blocked", name=name)

sys.meta_path.insert(0, Blocked())
there = importlib.util.find_spec  # for libraries that look before they import
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] in {packages} else there(name, package)
)
"""


def run_without(
    script: str,
    arguments: Sequence[object] = (),
    packages: Sequence[str] = HEAVY,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a script with `packages` made unimportable; its output is text."""
    code = _BLOCK.format(packages=tuple(packages)) + script
    given = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, cwd=cwd, check=False)
