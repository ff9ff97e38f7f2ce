"""Processes without this package: what forks of the server do instead of importing anew."""

from __future__ import annotations

import sys


def _forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "st_paragram"]:
        del sys.modules[name]


def tell_shape_without_plugin(model: str, text: str) -> None:
    """Encode a text with stock sentence-transformers, where st_paragram cannot be imported."""
    _forget()
    sys.modules["st_paragram"] = None  # type: ignore[assignment]
    from sentence_transformers import SentenceTransformer

    sys.stdout.write(f"{SentenceTransformer(model, device='cpu').encode([text]).shape}\n")
