"""What a server needs beside the package, looked for before anything heavy is imported."""

from __future__ import annotations

from st_paragram.extras import require


def check_packages() -> None:
    """Refuse to begin without the packages of the extra `serve`.

    Raises:
        MissingExtraError: uvicorn, FastAPI, prometheus_client or h11 is not installed.
    """
    for package in ("uvicorn", "fastapi", "prometheus_client", "h11"):
        require(package, "serve")
