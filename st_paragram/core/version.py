"""Versions of installed packages."""

from __future__ import annotations


def installed_version(package: str = "st_paragram") -> str:
    """Return the installed version of a package, or "not installed", as in a source tree."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
