"""Scores on test sets as a model card has them: entries of its `model-index`, and rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from huggingface_hub import EvalResult

from st_paragram.core.tables import hundredths
from st_paragram.learning.models.card_scores import score_entry
from st_paragram.tools.evaluation.results import BuccResult, MtebResult, StsResult, TatoebaResult

TestResult = StsResult | TatoebaResult | BuccResult | MtebResult

SCORE_SECTION = """
## Scores on test sets

Spearman's correlation of cosines with grades, x 100 (STS as mteb computes it, which names the sets), and errors of
finding translations by nearest neighbour, mean of both directions, x 100 (Tatoeba).

{scores}
"""
_MORE_SECTION = SCORE_SECTION.replace(
    "x 100 (Tatoeba).",
    "x 100 (Tatoeba);\nF1, x 100, of mined translations (BUCC); the main score of each task of mteb, x 100.",
)


def section_template(results: Sequence[TestResult]) -> str:
    """The section of the card, with a place for the table `scores`; it explains the scores that there are."""
    more = any(isinstance(result, BuccResult | MtebResult) for result in results)
    return _MORE_SECTION if more else SCORE_SECTION


def score_entries(results: Sequence[TestResult]) -> list[EvalResult]:
    """Entries of the `model-index`, in the order of the results; scores that do not exist have none."""
    return [entry for result in results for entry in _entries(result)]


def score_rows(results: Sequence[TestResult]) -> list[tuple[str, str]]:
    """Rows (set, score x 100) of a table for people, in the order of the results."""
    return [row for result in results for row in _rows(result)]


def _entries(result: TestResult) -> Iterator[EvalResult]:
    if isinstance(result, StsResult):
        for name, score in result.mteb.items():
            if score is not None:
                yield _mteb_entry("STS", name, f"mteb/{name.partition('/')[0].lower()}-sts", "cosine_spearman", score)
    elif isinstance(result, TatoebaResult):
        for name, of in result.languages.items():
            yield _mteb_entry(
                "BitextMining", f"Tatoeba/{name}-eng", "mteb/tatoeba-bitext-mining", "accuracy", 1 - of.cosine.mean
            )
    elif isinstance(result, BuccResult):
        for name, found in result.languages.items():
            for kind, margin in found.margins.items():
                yield score_entry("BitextMining", f"BUCC 2018 ({name}, {kind})", "bucc2018", "f1", margin.f1)
    else:
        for task, subsets in result.tasks.items():
            for subset, scores in subsets.items():
                if scores.main_score is not None:
                    yield _mteb_entry(
                        "mteb", f"{task}/{subset}", f"mteb/{task.lower()}", "main_score", scores.main_score
                    )


def _rows(result: TestResult) -> Iterator[tuple[str, str]]:
    if isinstance(result, StsResult):
        yield from ((name, hundredths(score)) for name, score in result.mteb.items())
    elif isinstance(result, TatoebaResult):
        for name, of in result.languages.items():
            yield f"Tatoeba {name}, errors", hundredths(of.cosine.mean)
    elif isinstance(result, BuccResult):
        for name, found in result.languages.items():
            for kind, margin in found.margins.items():
                yield f"BUCC 2018 {name}, {kind}, F1", hundredths(margin.f1)
    else:
        for task, subsets in result.tasks.items():
            for subset, scores in subsets.items():
                yield f"mteb {task}, {subset}", hundredths(scores.main_score)


def _mteb_entry(task: str, dataset: str, address: str, metric: str, share: float) -> EvalResult:
    """An entry for data that mteb knows; `dataset` may name a subset after a slash."""
    name, _, subset = dataset.partition("/")
    shown = f"MTEB {name} ({subset})" if subset else f"MTEB {name}"
    return score_entry(task, shown, address, metric, share, dataset_config=subset or "default")
