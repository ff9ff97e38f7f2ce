"""The authors' released code as a peer: a checkout with `models.py` and `utils.py` (EMNLP 2022)."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.channel import PeerAbsentError

_BATCH = 64  # sentences at a time, as in the paper's table of speeds
_SETTINGS: dict[str, Any] = {
    "gpu": 0,
    "model": "avg",
    "pool": "mean",
    "dropout": 0.0,
    "delta": 0.4,
    "lr": 1e-3,
    "grad_clip": 5.0,
    "batchsize": 128,
    "megabatch_size": 60,
    "megabatch_anneal": 150,
    "ngrams": 0,
    "zero_unk": 1,
    "share_encoder": 1,
    "share_vocab": 1,
    "scramble_rate": 0,
    "save_interval": 0,
    "report_interval": 100,
    "lower_case": 1,
    "tokenize": 0,
}


def load(checkout: str | None, model: Path) -> Callable[[list[str]], Any]:
    """An untrained model of the authors' class `Averaging`, as large as `model` and with its sentencepiece model.

    No checkpoint of theirs is read: it would be a pickle, and its content does not change the speed.

    Args:
        checkout: folder of their code, or None.
        model: a model directory, for the vocabulary and the dimension.

    Returns:
        What encodes sentences as their `embed_sentences.py` does, 64 at a time.

    Raises:
        PeerAbsentError: no checkout was given, or it is another one or fails here (with numpy >= 1.24 some of it does).
    """
    if checkout is None:
        raise PeerAbsentError("no checkout: --original DIR")
    folder = Path(checkout)
    for name in ("models.py", "utils.py"):
        if not (folder / name).is_file():
            raise PeerAbsentError(f"cannot run: {folder} has no {name}")
    import sentencepiece
    import torch
    from safetensors import safe_open

    with safe_open(model / "model.safetensors", "np") as file:
        dim = file.get_slice("embedding.weight").get_shape()[1]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model / "sentencepiece.model"))
    vocabulary = {processor.id_to_piece(index): index for index in range(len(processor))}
    sys.path.insert(0, str(folder))
    try:
        from models import Averaging  # type: ignore[import-not-found]
        from utils import Example, unk_string  # type: ignore[import-not-found]

        vocabulary[unk_string] = len(vocabulary)
        settings = Namespace(**_SETTINGS, dim=dim, sp_model=str(model / "sentencepiece.model"))
        encoder = Averaging(None, settings, vocabulary, None)
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise PeerAbsentError(f"cannot run: {folder}: {type(error).__name__}: {reason}") from error
    encoder.eval()

    def batch(sentences: list[str]) -> Any:  # noqa: ANN401
        examples = []
        for text in sentences:
            example = Example(" ".join(encoder.sp.EncodeAsPieces(text.lower())), settings.lower_case)
            example.populate_embeddings(encoder.vocab, encoder.zero_unk, encoder.ngrams)
            examples.append(example)
        return encoder.encode(*encoder.torchify_batch(examples)).numpy()

    def encode(sentences: list[str]) -> list[Any]:
        with torch.no_grad():
            return [batch(sentences[start : start + _BATCH]) for start in range(0, len(sentences), _BATCH)]

    return encode
