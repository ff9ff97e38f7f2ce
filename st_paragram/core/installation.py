"""What is installed: version, compiled kernels, optional packages."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from st_paragram.core.native import SWITCH, kernels, switched_off
from st_paragram.core.version import installed_version


@dataclass(frozen=True)
class Installation:
    """Description of this installation.

    Args:
        name: of the package, with its version.
        kernels: the instruction set that the compiled kernels run with, or why there are none.
        packages: what it rests on, with versions.
        extras: for each extra "installed", or which packages it lacks and how to install them.
    """

    name: str
    kernels: str
    packages: dict[str, str]
    extras: dict[str, str]


def describe_installation() -> Installation:
    """Describe the installation; nothing heavy is imported."""
    native, missing = kernels(), "none; see `python -m st_paragram.core.native`"
    if switched_off():
        missing = f"switched off: {SWITCH} is set to 0"
    wanted = [Requirement(line) for line in requires("st_paragram") or []]
    core = [each.name for each in wanted if each.marker is None]
    extras: dict[str, list[str]] = {}
    for each in wanted:
        if each.marker is not None and (extra := _extra(each)):
            extras.setdefault(extra, []).append(each.name)
    return Installation(
        f"st_paragram {installed_version()}",
        f"compiled, {native.instructions()}" if native else missing,
        {name: _version(name) or "missing" for name in core},
        {extra: _state(extra, names) for extra, names in extras.items()},
    )


def _extra(requirement: Requirement) -> str:
    """The extra that brings a requirement."""
    words = str(requirement.marker).replace('"', "").split("extra == ")
    return words[1].strip() if len(words) > 1 else ""


def _state(extra: str, names: list[str]) -> str:
    missing = [name for name in names if _version(name) is None]
    return f'lacks {", ".join(missing)}: pip install "st_paragram[{extra}]"' if missing else "installed"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
