"""Versions of installed packages."""

from __future__ import annotations


def installed_version(package: str = "st_paragram") -> str:
    """As pip knows it; "not installed" otherwise, as in a source tree."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer to import than all else here

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
