"""Readers of exported models in interleaved rounds, and how far their vectors are from the native reader's."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.averaging import table_type
from st_paragram.core.extras import require
from st_paragram.core.files import size

HEAD = ["reader, table", "MB on disk", "sentences/s", "ratio to native", "least cosine", "largest difference"]
Encode = Callable[[list[str]], NDArray[Any]]


def measure(model: str, sentences: list[str], folder: Path, rounds: int, threads: int) -> list[list[str]]:
    """Rows of the table: medians of rounds in which every reader has its turn."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    readers, sizes = _readers(model, folder, threads)
    rates: dict[str, list[float]] = {name: [] for name in readers}
    vectors = {name: encode(sentences) for name, encode in readers.items()}  # the round that does not count
    for _ in range(rounds):
        for name, encode in readers.items():
            start = time.perf_counter()
            encode(sentences)
            rates[name].append(len(sentences) / (time.perf_counter() - start))
    first = next(iter(readers))
    native = vectors[first].astype(np.float64)
    rows = []
    for name, seen in rates.items():
        rate, other = median(seen), vectors[name].astype(np.float64)
        products = np.linalg.norm(native, axis=1) * np.linalg.norm(other, axis=1)
        cosines = (native * other).sum(1) / np.maximum(products, 1e-12)
        difference = f"{np.abs(native - other).max():.1e}"
        ratio = f"{median(a / b for a, b in zip(seen, rates[first], strict=True)):.2f}"
        rows.append([name, f"{sizes[name] / 1e6:.1f}", f"{rate:,.0f}", ratio, f"{cosines.min():.7f}", difference])
    return rows


def _readers(model: str, folder: Path, threads: int) -> tuple[dict[str, Encode], dict[str, int]]:
    """What encodes and how many bytes its folder has, by name; the native reader first."""
    import torch

    from st_paragram.conversion.exports import FORMATS, ExportSettings, export_model
    from st_paragram.core.encoding.find import find
    from st_paragram.learning.models import directory

    torch.set_num_threads(threads)
    own = table_type(find(model)).value
    native = directory.load(model, device="cpu")
    first = f"native, {own}"
    readers: dict[str, Encode] = {first: lambda texts: np.asarray(native.encode(texts))}
    sizes = {first: size(find(model))}
    for kind in FORMATS:
        for dtype in dict.fromkeys((own, "float32", "float16")):
            place = export_model(model, folder / f"{kind}-{dtype}", kind, ExportSettings(dtype))
            name = f"{kind}, {dtype}"
            readers[name], sizes[name] = _reader(kind, place, threads), size(place)
    return readers, sizes


def _reader(kind: str, folder: Path, threads: int) -> Encode:
    if kind == "model2vec":
        reader = require("model2vec", "peers").StaticModel.from_pretrained(folder)
        several = threads > 1
        return lambda texts: np.asarray(reader.encode(texts, use_multiprocessing=several))
    place = importlib.util.spec_from_file_location(f"{kind}_reader", folder / "reader.py")
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    encoder = module.Encoder(folder, threads) if kind == "onnx" else module.Encoder(folder)
    return lambda texts: np.asarray(encoder.encode(texts))
