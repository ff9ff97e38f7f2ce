"""Semantic textual similarity: graded pairs, and how well cosines follow the grades."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator, SimilarityFunction

from st_paragram.errors import TextError


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of sentences with a grade of similarity, 0 (unrelated) to 5 (same meaning)."""

    name: str
    first: list[str]
    second: list[str]
    grades: list[float]


@dataclass(frozen=True)
class Correlation:
    """Correlation of cosines with grades, in -1 .. 1."""

    pearson: float
    spearman: float


def read_graded_pairs(path: str | Path) -> GradedPairs:
    r"""Read rows `grade TAB sentence1 TAB sentence2`, split at `\n` alone.

    Raises:
        TextError: the file is missing or empty, or a row (given by its number) is not of this form.
    """
    path = Path(path)
    if not path.is_file():
        raise TextError(f"{path}: no such file of graded pairs")
    pairs = GradedPairs(path.stem, [], [], [])
    for number, row in enumerate(path.read_bytes().rstrip(b"\n").split(b"\n"), start=1):
        try:
            grade, first, second = row.decode("utf-8").rstrip("\r").split("\t")
            pairs.grades.append(float(grade))
            if not math.isfinite(pairs.grades[-1]):
                raise ValueError
        except ValueError as error:
            raise TextError(
                f"{path}: row {number}: expected `grade TAB sentence TAB sentence`, saw {row[:60]!r}"
            ) from error
        pairs.first.append(first)
        pairs.second.append(second)
    if len(set(pairs.grades)) < 2:
        raise TextError(f"{path}: {len(pairs.grades)} pairs of one grade; a correlation needs different grades")
    return pairs


def correlate(model: SentenceTransformer, pairs: GradedPairs) -> Correlation:
    """Correlate the cosines of embeddings with the grades."""
    first, second = (
        model.encode(texts, batch_size=2048, normalize_embeddings=True, show_progress_bar=False)
        for texts in (pairs.first, pairs.second)
    )
    cosines = np.einsum("nd,nd->n", first, second)
    return Correlation(
        float(stats.pearsonr(cosines, pairs.grades).statistic), float(stats.spearmanr(cosines, pairs.grades).statistic)
    )


def development_evaluator(pairs: GradedPairs) -> EmbeddingSimilarityEvaluator:
    """sentence-transformers' evaluator for development pairs; its main figure is Spearman's correlation of cosines."""
    return EmbeddingSimilarityEvaluator(
        pairs.first,
        pairs.second,
        pairs.grades,
        batch_size=2048,
        main_similarity=SimilarityFunction.COSINE,
        similarity_fn_names=["cosine"],
        name=pairs.name,
        write_csv=False,
    )


def built_in_pairs(language: str, other: str = "en") -> GradedPairs:
    """The built-in graded pairs, sentence1 in `other` and sentence2 in `language`: a check, no benchmark."""
    from st_paragram.data.sample.held_out import graded_pairs

    first, second, grades = graded_pairs(other, language)
    return GradedPairs(f"built-in-{other}-{language}", first, second, grades)


def development_pairs(path: str | Path | None, language: str) -> GradedPairs:
    """Pairs to watch a training with: a file's (e.g. STS 2017 en-en), or the built-in ones of English and `language`.

    For a language without built-in sentences the built-in English pairs serve.
    """
    from st_paragram.data.sample.held_out import HELD_OUT_LANGUAGES

    if path is not None:
        return read_graded_pairs(path)
    return built_in_pairs(language if language in HELD_OUT_LANGUAGES else "en")
