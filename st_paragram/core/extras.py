"""Optional dependencies: imported where they are needed, with one error where they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

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


def require(package: str, extra: str, purpose: str = "", install: str = "") -> ModuleType:
    """Import an optional package, or one of its modules, that an `extra` of setup.cfg brings and a `purpose` needs.

    `install` names what to install, for extras that the light installation uses, too: `st_paragram[...]` brings torch.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        missing = (error.name or package).partition(".")[0]
        needs = f"{purpose} needs {missing}" if purpose else f"{missing} is needed"
        advice = f"pip install {install} (extra {extra})" if install else f'pip install "st_paragram[{extra}]"'
        raise MissingExtraError(f"{needs}, which cannot be imported ({error}); {advice}") from error
