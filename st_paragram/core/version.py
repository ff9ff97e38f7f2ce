"""The version of the installed package."""

from __future__ import annotations

from functools import cache


@cache
def installed_version() -> str:
    """As pip knows it; "0+unknown" in a source tree that was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("st_paragram")
    except PackageNotFoundError:
        return "0+unknown"
