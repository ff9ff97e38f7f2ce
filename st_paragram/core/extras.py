"""Optional dependencies: imported when needed, with one kind of error if they are missing."""

from __future__ import annotations

import importlib
from contextlib import suppress
from importlib.util import find_spec
from types import ModuleType

from st_paragram.errors import MissingExtraError

# Packages of the full installation that the light installation lacks.
_FULL = (
    "torch",
    "transformers",
    "sentence_transformers",
    "h5py",
    "scipy",
    "datasets",
    "accelerate",
    "huggingface_hub",
    "langcodes",
)


def missing_from_light(error: ImportError) -> str | None:
    """Return advice if the light installation lacks a package; None for any other error."""
    package = (error.name or "").partition(".")[0]
    if package not in _FULL:
        return None
    return (
        f"{package.replace('_', '-')} is not installed (the light installation leaves it out);"
        " for a full installation in a clone, run: pip install -e ."
    )


def require(package: str, extra: str, purpose: str = "") -> ModuleType:
    """Import an optional package or one of its modules.

    Args:
        package: Name of the package or module.
        extra: Extra of setup.cfg that installs it.
        purpose: What needs it, for the error.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        missing = (error.name or package).partition(".")[0]
        problem = f"{purpose} needs {missing}" if purpose else f"{missing} is needed"
        raise MissingExtraError(
            f"{problem}, which cannot be imported ({error}); {_advice(extra)}"
        ) from error


def _advice(extra: str) -> str:
    """Return how to install an extra.

    Without torch, its packages are named, since `st_paragram[...]` would install torch.
    """
    if find_spec("torch") is not None:
        return f'pip install "st_paragram[{extra}]"'
    from importlib.metadata import PackageNotFoundError, requires  # slow to import

    from packaging.requirements import Requirement

    names = []
    with suppress(PackageNotFoundError):
        for line in requires("st_paragram") or ():
            requirement = Requirement(line)
            if f'extra == "{extra}"' in str(requirement.marker):
                names.append(requirement.name)
    if names:
        return f"pip install {' '.join(names)} (extra {extra})"
    return f"install the packages of the extra {extra} in setup.cfg"


def installed_version(package: str = "st_paragram") -> str:
    """Return the installed version of a package, or "not installed", as in a source tree."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
