"""Graded pairs to watch a training with, and the evaluator that does so."""

from __future__ import annotations

from pathlib import Path

from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator, SimilarityFunction

from st_paragram.evaluation.correlation import BATCH_SIZE
from st_paragram.evaluation.graded_pairs import GradedPairs, read_graded_pairs


def development_evaluator(pairs: GradedPairs) -> EmbeddingSimilarityEvaluator:
    """sentence-transformers' evaluator for development pairs; its main figure is Spearman's correlation of cosines."""
    return EmbeddingSimilarityEvaluator(
        pairs.first,
        pairs.second,
        pairs.grades,
        batch_size=BATCH_SIZE,
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
