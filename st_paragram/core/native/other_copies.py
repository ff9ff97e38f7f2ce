"""Kernels of another copy of the package, for a Python that was started in a clone.

There `import st_paragram` finds the folder of the clone, in which nothing is compiled, before the package that
`pip install .` put into site-packages. Its kernels are used if they were built from exactly these sources.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from st_paragram.core.native.sources import sources_mark

_HERE = Path(__file__).resolve().parent


def compiled_elsewhere() -> list[Path]:
    """Files of compiled kernels in other copies of the package on Python's path."""
    folders = [Path(entry or ".") / "st_paragram" / "core" / "native" for entry in sys.path]
    files = [folder / f"_kernels{suffix}" for folder in folders for suffix in EXTENSION_SUFFIXES]
    return [file.resolve() for file in files if file.is_file() and file.parent.resolve() != _HERE]


def load_from_elsewhere(name: str) -> ModuleType | None:
    """The kernels of another copy, imported under a name; None if no copy has kernels of these very sources.

    Others are not even loaded: two sets of kernels cannot be in one process.
    """
    if (mark := sources_mark()) is None:
        return None
    for file in compiled_elsewhere():
        try:
            spec = spec_from_file_location(name, file) if mark.encode() in file.read_bytes() else None
            if spec is not None and spec.loader is not None:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                return sys.modules.setdefault(name, module)
        except (OSError, ImportError):
            continue
    return None
