"""Processes without this package, or with another copy of it: what forks of the server do instead of importing anew."""

from __future__ import annotations

import json
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


def tell_shape_with_copy(installed: str, model: str, texts: list[str]) -> None:
    """Encode texts with the package that is installed in a folder: the module's file, and the shape of the vectors."""
    _forget()
    sys.path.insert(0, installed)
    import st_paragram

    encoded = st_paragram.load(model, device="cpu").encode(texts)
    sys.stdout.write(json.dumps([st_paragram.__file__, list(encoded.shape)]) + "\n")
