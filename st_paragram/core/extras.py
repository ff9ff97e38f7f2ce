"""Optional dependencies: imported when they are needed, with one kind of error if they are missing."""

from __future__ import annotations

import importlib
from contextlib import suppress
from importlib.util import find_spec
from types import ModuleType

from st_paragram.errors import MissingExtraError

# Packages of the full installation that the light installation lacks.
_FULL = (
    "torch", "transformers", "sentence_transformers", "h5py", "scipy", "datasets", "accelerate", "huggingface_hub",
    "langcodes",
)  # fmt: skip


def missing_from_light(error: ImportError) -> str | None:
    """Return advice if the light installation lacks a package, in one line; None for any other
    error.
    """
    package = (error.name or "").partition(".")[0]
    if package not in _FULL:
        return None
    seen = f"{package.replace('_', '-')} is not installed (the light installation leaves it out)"
    return f"{seen}; for a full installation in a clone, run: pip install -e ."


def require(package: str, extra: str, purpose: str = "") -> ModuleType:
    """Import an optional package or one of its modules, which an `extra` of setup.cfg installs;
    `purpose` needs it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        missing = (error.name or package).partition(".")[0]
        needs = f"{purpose} needs {missing}" if purpose else f"{missing} is needed"
        raise MissingExtraError(
            f"{needs}, which cannot be imported ({error}); {_advice(extra)}"
        ) from error


def _advice(extra: str) -> str:
    """How to install an extra: without torch, by naming its packages, since `st_paragram[...]`
    would install torch.
    """
    if find_spec("torch") is not None:
        return f'pip install "st_paragram[{extra}]"'
    from importlib.metadata import PackageNotFoundError, requires  # slow to import

    from packaging.requirements import Requirement

    with suppress(PackageNotFoundError):
        needed = map(Requirement, requires("st_paragram") or ())
        if names := [each.name for each in needed if f'extra == "{extra}"' in str(each.marker)]:
            return f"pip install {' '.join(names)} (extra {extra})"
    return f"install the packages of the extra {extra} in setup.cfg"


def installed_version(package: str = "st_paragram") -> str:
    """Return the installed version of a package, or "not installed", as in a source tree."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
