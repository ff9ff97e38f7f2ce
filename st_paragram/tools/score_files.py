"""Score files of pairs, of any size."""

from __future__ import annotations

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

from st_paragram.core.arrays import Vectors
from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.files import atomic
from st_paragram.core.outputs import output_files
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_pairs
from st_paragram.core.text.translation_files import pair_writer, tmx_languages
from st_paragram.errors import MiningError, SettingsError, TextError, short

Scorer = Callable[[Vectors, Vectors], NDArray[np.floating[Any]]]

_PAIRS = 1 << 14  # pairs encoded and written at a time


@dataclass
class ScoringReport:
    """Counts of a scoring run.

    Attributes:
        pairs: Number of pairs.
        blank: Pairs with a blank side.
        unknown: Other pairs with a side in which the model knows no token.
    """

    pairs: int = 0
    blank: int = 0
    unknown: int = 0


def cosines(first: Vectors, second: Vectors) -> NDArray[np.floating[Any]]:
    """Compute the cosines of pairs of unit vectors: (n, D) twice to (n,)."""
    return np.einsum("nd,nd->n", first, second)


def score_pairs(
    model: TextEncoder,
    pairs: Iterable[tuple[str, str]],
    report: ScoringReport | None = None,
    scorer: Scorer = cosines,
) -> Iterator[tuple[float, str, str]]:
    """Yield (score, first, second) for pairs of texts, in order.

    A pair with a side in which the model knows no token has no similarity. Its score is 0 as a
    cosine or a ratio, and -1 as a distance, so that no threshold keeps it.

    Args:
        model: An `Encoder` or any SentenceTransformer.
        pairs: Pairs of texts.
        report: Counts the pairs.
        scorer: Function that scores pairs of unit vectors.
    """
    if report is None:
        report = ScoringReport()
    size = batch_size(model)
    no_similarity = getattr(scorer, "no_similarity", 0.0)
    pairs = iter(pairs)
    while batch := list(islice(pairs, _PAIRS)):
        for pair in batch:
            if isinstance(pair, str):
                raise SettingsError(
                    f"{short(pair)} is one text; give pairs of texts, such as [(first, second)]"
                )
        texts = [text for pair in batch for text in pair]
        vectors, known = unit_embeddings(model, texts, batch_size=size, normalize_embeddings=True)
        both_known = known[0::2] & known[1::2]
        scores = np.full(len(batch), no_similarity)
        if both_known.any():
            scores[both_known] = scorer(vectors[0::2][both_known], vectors[1::2][both_known])
        if not np.isfinite(scores).all():
            number = report.pairs + int(np.argmin(np.isfinite(scores))) + 1
            raise MiningError(
                f"pair {number} has a score that is not finite; the model is damaged, use another"
                " model"
            )
        for (first, second), score, is_known in zip(
            batch, scores.tolist(), both_known.tolist(), strict=True
        ):
            blank = not (first.strip() and second.strip())
            report.pairs += 1
            report.blank += blank
            report.unknown += not (blank or is_known)
            yield score, first, second


def score_file(
    model: TextEncoder,
    source: TextSource,
    output: str | Path | IO[bytes],
    overwrite: bool = False,
    scorer: Scorer = cosines,
    scores: array[float] | None = None,
    languages: tuple[str, str] | None = None,
) -> ScoringReport:
    """Score a file of pairs; write a row `score TAB first TAB second` for each pair, or TMX.

    Args:
        model: An `Encoder` or any SentenceTransformer.
        source: The pairs.
        output: Output file, or a binary stream.
        overwrite: Replace an existing output.
        scorer: Function that scores pairs of unit vectors.
        scores: Array to which the written scores are appended: 8 bytes per pair.
        languages: Languages of both sides in an output `.tmx`; None for other outputs.

    Examples:
        >>> from st_paragram import Encoder, parse_source, score_file
        >>> source = parse_source("pairs.tsv", ("en", "es"))
        >>> report = score_file(Encoder("p-sp-mini"), source, "scored.tsv")
    """
    report = ScoringReport()
    counts = ReadCounts()
    with ExitStack() as stack:
        file = output
        tmx = None
        if isinstance(file, str | Path):
            tmx = tmx_languages(file, languages)
            path = Path(file)
            stack.enter_context(output_files(path, overwrite=overwrite))
            file = stack.enter_context(atomic(path))
        writer = stack.enter_context(pair_writer(file, tmx))
        rows = score_pairs(model, read_pairs(source, counts), report, scorer)
        for score, first, second in tqdm(rows, unit="pair", unit_scale=True, disable=None):
            writer.write(first, second, score=score)
            if scores is not None:
                scores.append(round(score, 6))
        if counts.nul_rows:
            raise TextError(
                f"{source.name}: {counts.nul_rows:,} rows have NUL bytes and cannot be scored;"
                " remove the bytes"
            )
    return report
