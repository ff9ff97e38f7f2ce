"""Score files of pairs, of any size."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.files import atomic, output_files
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_pairs
from st_paragram.errors import MiningError, SettingsError, TextError, short

Vectors = NDArray[np.float32]
Scorer = Callable[[Vectors, Vectors], NDArray[np.floating[Any]]]

_PAIRS = 1 << 14  # pairs encoded and written at a time


@dataclass
class ScoringReport:
    """Number of scored pairs, and of pairs with a blank side."""

    pairs: int = 0
    blank: int = 0


def cosines(first: Vectors, second: Vectors) -> NDArray[np.floating[Any]]:
    """Compute the cosines of pairs of unit vectors: (n, D) twice to (n,)."""
    return np.einsum("nd,nd->n", first, second)


def score_pairs(
    model: TextEncoder, pairs: Iterable[tuple[str, str]], report: ScoringReport | None = None, scorer: Scorer = cosines
) -> Iterator[tuple[float, str, str]]:
    """Yield (score, first, second) for pairs of texts, in order.

    Args:
        model: An `Encoder` or any SentenceTransformer.
        pairs: Pairs of texts.
        report: Counts all pairs, and pairs with a blank side.
        scorer: Function that scores pairs of unit vectors.
    """
    report, at_once = report or ScoringReport(), batch_size(model)
    pairs = iter(pairs)
    while batch := list(islice(pairs, _PAIRS)):
        for pair in batch:
            if isinstance(pair, str):
                raise SettingsError(f"{short(pair)} is one text; give pairs of texts, such as [(first, second)]")
        texts = [text for pair in batch for text in pair]
        rows = model.encode(texts, batch_size=at_once, normalize_embeddings=True, show_progress_bar=False)
        scores = scorer(rows[0::2], rows[1::2])
        for score, (first, second) in zip(scores, batch, strict=True):
            report.pairs += 1
            report.blank += not (first.strip() and second.strip())
            if not math.isfinite(score):
                raise MiningError(f"pair {report.pairs} has the score {score}; the model is damaged, use another model")
            yield float(score), first, second


def score_file(
    model: TextEncoder,
    source: TextSource,
    output: str | Path | IO[bytes],
    overwrite: bool = False,
    scorer: Scorer = cosines,
    scores: array[float] | None = None,
) -> ScoringReport:
    """Score a file of pairs; write a row `score TAB first TAB second` for each pair.

    Args:
        model: An `Encoder` or any SentenceTransformer.
        source: The pairs.
        output: Output file, or a binary stream.
        overwrite: Replace an existing output.
        scorer: Function that scores pairs of unit vectors.
        scores: Array to which the written scores are appended: 8 bytes per pair.

    Example:
        >>> from st_paragram import Encoder, parse_source, score_file
        >>> source = parse_source("pairs.tsv", ("en", "es"))
        >>> report = score_file(Encoder("p-sp-mini"), source, "scored.tsv")
    """
    report, counts = ScoringReport(), ReadCounts()
    with ExitStack() as stack:
        file = output
        if isinstance(file, str | Path):
            path = Path(file)
            stack.enter_context(output_files(path, overwrite=overwrite))
            file = stack.enter_context(atomic(path))
        pairs = score_pairs(model, read_pairs(source, counts), report, scorer)
        for score, first, second in tqdm(pairs, unit="pair", unit_scale=True, disable=None):
            file.write(f"{score:.6f}\t{first}\t{second}\n".encode())
            if scores is not None:
                scores.append(round(score, 6))
        if counts.nul_rows:
            seen = f"{counts.nul_rows} rows have NUL bytes and cannot be scored"
            raise TextError(f"{source.name}: {seen}; remove the bytes")
    return report
