"""Optional dependencies: imported when needed, with one kind of error if they are missing."""

from __future__ import annotations

import importlib
from contextlib import suppress
from importlib.util import find_spec
from types import ModuleType

from st_paragram.errors import MissingExtraError

# Modules and packages of the light installation.
_LIGHT = {
    "filelock": "filelock",
    "numpy": "numpy",
    "packaging": "packaging",
    "pydantic": "pydantic",
    "yaml": "PyYAML",
    "regex": "regex",
    "requests": "requests",
    "safetensors": "safetensors",
    "sentencepiece": "sentencepiece",
    "threadpoolctl": "threadpoolctl",
    "tokenizers": "tokenizers",
    "tqdm": "tqdm",
    "typing_extensions": "typing_extensions",
    "urllib3": "urllib3",
}
# Packages of the full installation that the light installation lacks.
_SMALL = ("h5py", "langcodes", "scipy")
_LARGE = (
    "torch",
    "transformers",
    "sentence_transformers",
    "datasets",
    "accelerate",
    "huggingface_hub",
)
_TORCH_FOR_CPUS = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def missing_from_light(error: ImportError, needs_torch: bool = False) -> str | None:
    """Return advice if a required package is not installed; None for any other error.

    Small packages are installed alone, unless the caller `needs_torch`, which brings them.
    """
    package = (error.name or "").partition(".")[0]
    if package not in (*_LIGHT, *_SMALL, *_LARGE):
        return None
    absent = [name for module, name in _LIGHT.items() if find_spec(module) is None]
    if absent and not needs_torch:
        return f"{package} is not installed; run: pip install {' '.join(absent)}"
    has_torch = find_spec("torch") is not None
    if package in _SMALL and (has_torch or not needs_torch):
        missing = [name for name in _SMALL if find_spec(name) is None]
        advice = f"run: pip install {' '.join(missing)}"
    elif has_torch:
        advice = "run: pip install st_paragram"
    else:
        package = "torch"
        advice = (
            f"run: {_TORCH_FOR_CPUS} (without a GPU: 1.7 GB in all instead of 6.1), then:"
            " pip install st_paragram"
        )
    name = package.replace("_", "-")
    return f"{name} is not installed (the light installation leaves it out); {advice}"


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
