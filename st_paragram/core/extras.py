"""Optional dependencies: imported where they are needed, with one error where they are missing."""

from __future__ import annotations

import importlib
import shlex
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from types import ModuleType

from packaging.requirements import Requirement

from st_paragram.errors import MissingExtraError

# What the full installation has and the light one has not.
_FULL = ("torch", "transformers", "sentence_transformers", "h5py", "scipy", "datasets", "accelerate", "huggingface_hub")


def missing_from_light(error: ImportError) -> str | None:
    """What to do where the light installation lacks a package, in one line; None for any other error."""
    package = (error.name or "").partition(".")[0]
    if package not in _FULL:
        return None
    seen = f"{package.replace('_', '-')} is not installed, which the light installation leaves out"
    return f"{seen}; for a full installation in a clone: pip install -e ."


def require(package: str, extra: str, purpose: str = "") -> ModuleType:
    """Import an optional package, or one of its modules, that an `extra` of setup.cfg brings and a `purpose` needs."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        missing = (error.name or package).partition(".")[0]
        needs = f"{purpose} needs {missing}" if purpose else f"{missing} is needed"
        raise MissingExtraError(f"{needs}, which cannot be imported ({error}); {_install(extra)}") from error


def _install(extra: str) -> str:
    """How to install an extra: by the names of its packages in the light installation, as the extra brings torch."""
    try:
        known = [Requirement(line) for line in requires("st_paragram") or ()] if find_spec("torch") is None else []
    except PackageNotFoundError:  # a source tree that is not installed
        known = []
    markers = [(each, each.marker) for each in known if each.marker]
    added = [each for each, marker in markers if marker.evaluate({"extra": extra}) > marker.evaluate({"extra": ""})]
    packages = [shlex.quote(f"{each.name}{each.specifier}") for each in added]
    return f"pip install {' '.join(packages)}" if packages else f'pip install "st_paragram[{extra}]"'
