"""The packages that a server needs in addition, looked for before anything is imported."""

from __future__ import annotations

from importlib.util import find_spec

from st_paragram.core.extras import require

_PACKAGES = ("uvicorn", "httptools", "orjson", "prometheus_client")


def check_packages() -> None:
    """Refuse to begin without the packages of the extra `serve`.

    Raises:
        MissingExtraError: one of them is not installed.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            require(package, "serve")
