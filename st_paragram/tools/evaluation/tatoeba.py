"""Tatoeba: retrieval of translations by nearest neighbor (Artetxe and Schwenk, TACL 2019).

The test sets are files `xxx-eng.tsv`, rows `foreign TAB English`, or pairs of files as they were first published.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.bitext_mining.candidates import best_neighbors
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.evaluation.base import Request, inner_folder
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.published import Source, rows
from st_paragram.tools.evaluation.published_sets import is_published, not_comparable
from st_paragram.tools.evaluation.translations import Translations, read_translations
from st_paragram.tools.neighbors.exact import nearest_both_ways
from st_paragram.tools.neighbors.results import Vectors

Rows = NDArray[np.int64]

#: The test sets go by ISO 639-3 codes; these also by the two letters used elsewhere in this project.
CODES = {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "ru": "rus", "tr": "tur", "zh": "cmn"}

ENGLISH = ("en", "eng")

_TABLE = re.compile(r"([a-z]{3})-eng\.tsv")
_PUBLISHED = re.compile(r"tatoeba\.([a-z]{3})-eng\.\1")

# Error rate by nearest neighbor (cosine), mean of both directions; columns as Tatoeba's files are named.
PUBLISHED = rows(
    Source.P_SP,
    "ara deu spa fra rus tur average",
    """
    LASER: 7.8 1.0 2.1 4.3 5.9 2.6 4.0
    LaBSE: 9.1 0.7 1.6 4.0 4.7 1.6 3.6
    CRISS: 22.0 2.0 3.7 7.3 9.7 7.1 8.6
    P-SP: 8.8 1.5 2.4 5.4 5.6 1.4 4.2
    """,
)

_HEAD = (
    "language",
    "pairs",
    "cosine: to English",
    "from English",
    "mean",
    "margin: to",
    "from",
    "mean",
    "accuracy",
    "F1",
)

_READING = (
    "It is an error if the nearest neighbor is not the translation. Accuracy and F1 x 100 are as mteb counts them."
)


@dataclass(frozen=True)
class RetrievalError:
    """Shares of sentences, 0 .. 1, for which another sentence than their translation was found.

    Args:
        forward: looking for first sentences' translations among the second ones.
        backward: the reverse.
    """

    forward: float
    backward: float

    @property
    def mean(self) -> float:
        """Mean of both directions: the task's error rate."""
        return (self.forward + self.backward) / 2


@dataclass(frozen=True)
class RetrievalScores:
    """All that is known about retrieval among n pairs.

    Args:
        pairs: n.
        cosine: errors of the nearest neighbor by cosine.
        margin: errors of the neighbor, among the k nearest, of the highest margin (ratio) score.
        accuracy: share of first sentences whose nearest neighbor by cosine is their translation, as mteb counts it:
            1 - cosine.forward, but for ties.
        f1: mteb's main score, see `weighted_f1`.
    """

    pairs: int
    cosine: RetrievalError
    margin: RetrievalError
    accuracy: float
    f1: float


@dataclass(frozen=True)
class TatoebaResult:
    """A model on the Tatoeba test sets: language -> scores, and the seconds that all of them took."""

    languages: dict[str, RetrievalScores]
    seconds: float | None = None


@dataclass(frozen=True)
class TatoebaRun:
    """Models on the Tatoeba test sets; k neighbors make a margin's background; languages whose data are others."""

    benchmark: ClassVar[str] = "tatoeba"
    models: dict[str, TatoebaResult]
    k: int
    altered: tuple[str, ...] = ()


RUN = TatoebaRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has test sets."""
    return bool(tatoeba_files(inner_folder(data, "tatoeba")))


def tatoeba_sets(folder: str | Path, languages: Sequence[str] | None = None) -> dict[str, TextSource]:
    """The test sets of a folder: language -> its file `xxx-eng.tsv`, or files `tatoeba.xxx-eng.xxx` and `... .eng`.

    Args:
        folder: where they are.
        languages: ISO 639-3 codes, or two letters for the languages of `CODES`; None for all, by code.

    Raises:
        EvaluationError: the folder has no such file, or not the language asked for; the message lists what there is.
    """
    found = tatoeba_files(folder)
    if not found:
        raise EvaluationError(f"{folder}: no Tatoeba test sets; files are named like spa-eng.tsv (foreign TAB English)")
    wanted = dict.fromkeys(CODES.get(code, code) for code in (sorted(found) if languages is None else languages))
    if absent := [code for code in wanted if code not in found]:
        there = " ".join(sorted(found))
        raise EvaluationError(f"{folder}: no test set for {', '.join(absent)}; there are {len(found)}: {there}")
    return {code: found[code] for code in wanted}


def read_tatoeba(data: str | Path, languages: Sequence[str] = ()) -> list[Translations]:
    """Read test sets of a folder of evaluation data.

    Args:
        data: the folder, whose folder `tatoeba` is taken if there is one.
        languages: as in `tatoeba_sets`, all if empty; English, the other side of every set, means nothing here.

    Raises:
        EvaluationError: as `tatoeba_sets`.
        TextError: as `read_translations`.
    """
    wanted = [code for code in languages if code not in ENGLISH] or list(languages)
    sets = tatoeba_sets(inner_folder(data, "tatoeba"), wanted or None)
    return [read_translations(source, code) for code, source in sets.items()]


def tatoeba_files(folder: str | Path) -> dict[str, TextSource]:
    """All test sets of a folder, which may have none: language -> its file or files, by code."""
    folder, found = Path(folder), dict[str, TextSource]()
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if match := _TABLE.fullmatch(path.name):
            found[match[1]] = TextSource((str(path),), (match[1], "eng"))
        elif match := _PUBLISHED.fullmatch(path.name):
            english = path.with_name(f"tatoeba.{match[1]}-eng.eng")
            found.setdefault(match[1], TextSource((str(path), str(english)), (match[1], "eng")))
    return found


def run(request: Request) -> TatoebaRun:
    """Score models on the test sets of a folder.

    Raises:
        EvaluationError, TextError: as `read_tatoeba`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    sets = read_tatoeba(request.folder, request.languages)
    found = score_each(request.models, lambda model: score_tatoeba(model, sets), request.untrained)
    altered = (of.name for of in sets if not is_published(f"tatoeba/{of.name}", of.first, of.second))
    return TatoebaRun(found, DEFAULT_K, tuple(altered))


def retrieval_error(
    model: TextEncoder, first: Sequence[str], second: Sequence[str], block: int = 4096
) -> RetrievalError:
    """Look for each sentence's translation among all sentences of the other side, by cosine.

    Args:
        model: any model.
        first: n sentences.
        second: their translations, in the same order.
        block: rows compared at a time.
    """
    a, b = (embed(model, list(texts)) for texts in (first, second))
    return RetrievalError(_misses(_nearest(a, b, block)), _misses(_nearest(b, a, block)))


def retrieval_scores(first: Vectors, second: Vectors, k: int = DEFAULT_K) -> RetrievalScores:
    """Score the retrieval of translations in both directions.

    Args:
        first: embeddings of n sentences, float32 (n, D), rows of length 1.
        second: those of their translations, in the same order.
        k: neighbors that make a margin's background, fewer if there are not as many sentences.

    Raises:
        EvaluationError: the sides differ in number, or as `nearest_neighbors`.
    """
    if len(first) != len(second):
        raise EvaluationError(f"{len(first)} sentences and {len(second)} translations; each needs its translation")
    forward, backward = nearest_both_ways(first, second, k)
    ahead, back = forward.indices[:, 0], backward.indices[:, 0]
    found = found_by_mteb(first, second)
    ahead_by_margin, _ = best_neighbors(forward, backward, Margin.RATIO)
    back_by_margin, _ = best_neighbors(backward, forward, Margin.RATIO)
    return RetrievalScores(
        len(first),
        RetrievalError(_misses(ahead), _misses(back)),
        RetrievalError(_misses(ahead_by_margin), _misses(back_by_margin)),
        float((found == np.arange(len(found))).mean()),
        weighted_f1(found),
    )


def score_tatoeba(model: TextEncoder, sets: Sequence[Translations], k: int = DEFAULT_K) -> TatoebaResult:
    """Score the retrieval of translations in several sets; errors as of `retrieval_scores`.

    Args:
        model: any model.
        sets: the test sets, with names.
        k: neighbors that make a margin's background.
    """
    started = time.perf_counter()
    found = {pairs.name: retrieval_scores(embed(model, pairs.first), embed(model, pairs.second), k) for pairs in sets}
    return TatoebaResult(found, time.perf_counter() - started)


def found_by_mteb(first: Vectors, second: Vectors) -> Rows:
    """Nearest neighbors as mteb 2 looks for them (its `BitextMiningEvaluator`), int64 (n,).

    Sentences with the same words have one vector; which of them is "nearest" is a matter of rounding there, so only
    the same steps give the same figures: rows are brought to length 1 again, and looked for in blocks of 100.
    """
    query, corpus = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in (first, second))
    return _nearest(query, corpus, 100)


def weighted_f1(found: Rows) -> float:
    """F1 as mteb counts it: sentences as classes of one member each, the mean of their F1.

    A class whose one member was found has recall 1 and, if c queries in all chose it, precision 1 / c.

    Args:
        found: for each of n queries the row chosen, right if it is the query's own number, int64 (n,).
    """
    hits = found == np.arange(len(found))
    chosen = np.bincount(found, minlength=len(found))[: len(found)]
    return float(np.where(hits, 2 / (1 + chosen), 0.0).mean())


def report(found: TatoebaRun) -> Iterator[str]:
    """A table for each model, and one of all with published rows, part by part."""
    yield "## Tatoeba: errors x 100 of the nearest neighbor\n"
    yield f"{_READING}\n"
    for name, result in found.models.items():
        seconds = "" if result.seconds is None else f"This took {result.seconds:.1f} s.\n\n"
        yield f"### {name}\n\n{seconds}{_table(result)}\n"
    first = next(iter(found.models.values()))
    columns = [language for language in PUBLISHED[0].scores if language in first.languages]
    if altered := [language for language in columns if language in found.altered]:
        yield not_comparable(altered) + "\n"
    if shared := [language for language in columns if language not in altered]:
        yield f"## Tatoeba: mean error x 100 by cosine, with published rows\n\n{_published_table(found, shared)}"


def _table(result: TatoebaResult) -> str:
    scores = result.languages
    cells = [[language, str(row.pairs), *map(hundredths, _figures(row))] for language, row in scores.items()]
    if len(cells) > 1:
        means = (fmean(column) for column in zip(*map(_figures, scores.values()), strict=True))
        cells.append(
            [f"mean of {len(scores)}", str(sum(row.pairs for row in scores.values())), *map(hundredths, means)]
        )
    return markdown_table(_HEAD, cells)


def _figures(row: RetrievalScores) -> list[float]:
    """The columns behind the number of pairs."""
    both = (figure for error in (row.cosine, row.margin) for figure in (error.forward, error.backward, error.mean))
    return [*both, row.accuracy, row.f1]


def _published_table(found: TatoebaRun, languages: Sequence[str]) -> str:
    figures = {row.label: [row.scores[language] for language in languages] for row in PUBLISHED}
    figures |= {name: [of.languages[key].cosine.mean for key in languages] for name, of in found.models.items()}
    cells = [[name, *map(hundredths, row), hundredths(fmean(row))] for name, row in figures.items()]
    return markdown_table(["model", *languages, "mean"], cells)


def _nearest(queries: Vectors, corpus: Vectors, block: int) -> Rows:
    """For each row the row of the corpus with the largest product, int64 (n,)."""
    starts = range(0, len(queries), block)
    return np.concatenate([(queries[start : start + block] @ corpus.T).argmax(axis=1) for start in starts])


def _misses(found: Rows) -> float:
    return float((found != np.arange(len(found))).mean())
