"""Scores on test sets as a model card has them, out of the records that `st-paragram evaluate --json` writes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from huggingface_hub import EvalResult

from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.errors import EvaluationError, one_line
from st_paragram.learning.models.card import blocks, score_entry
from st_paragram.tools.evaluation.bucc import BuccResult
from st_paragram.tools.evaluation.record import Record, read_records
from st_paragram.tools.evaluation.results import MtebResult, StsResult
from st_paragram.tools.evaluation.tatoeba import TatoebaResult

logger = logging.getLogger(__name__)

TestResult = StsResult | TatoebaResult | BuccResult | MtebResult

_MEANING = """\
Spearman's correlation of cosines with grades, x 100 (STS as mteb computes it, which names the sets), and errors of
finding translations by nearest neighbor, mean of both directions, x 100 (Tatoeba)"""
_MORE = ";\nF1, x 100, of mined translations (BUCC); the main score of each task of mteb, x 100"


def scores_of(model: str | Path, files: Sequence[str | Path]) -> list[TestResult]:
    """What a model scored, of every benchmark that a model card has a place for.

    Args:
        model: its directory, name or hub id; records know it by any path that ends with the same name.
        files: of records, each with one benchmark or several.

    Raises:
        EvaluationError: a file is not a record, or does not have this model.
    """
    return [result for file in files for record in read_records(file) if (result := _result(record, model, file))]


def score_section(results: Sequence[TestResult]) -> tuple[str, str]:
    """Title and text of the card's section: what the scores are, and their table."""
    more = any(isinstance(result, BuccResult | MtebResult) for result in results)
    rows = [(label, hundredths(share)) for label, share, _ in _scores(results)]
    text = blocks(_MEANING + (_MORE if more else "") + ".", markdown_table(("set", "score"), rows))
    return "Scores on test sets", text


def score_entries(results: Sequence[TestResult]) -> list[EvalResult]:
    """Entries of the `model-index`, in the order of the results; scores that do not exist have none."""
    return [entry for _, _, entries in _scores(results) for entry in entries]


def _scores(results: Sequence[TestResult]) -> Iterator[tuple[str, float | None, list[EvalResult]]]:
    """Each score: its label and its share in the table, and its entry."""
    for result in results:
        if isinstance(result, StsResult):
            for name, share in result.mteb.items():
                address = f"mteb/{name.partition('/')[0].lower()}-sts"
                yield name, share, _mteb_entry("STS", name, address, "cosine_spearman", share)
        elif isinstance(result, TatoebaResult):
            for name, of in result.languages.items():
                error, data = of.cosine.mean, "mteb/tatoeba-bitext-mining"
                entry = _mteb_entry("BitextMining", f"Tatoeba/{name}-eng", data, "accuracy", 1 - error)
                yield f"Tatoeba {name}, errors", error, entry
        elif isinstance(result, BuccResult):
            for name, found in result.languages.items():
                for kind, margin in found.margins.items():
                    shown = f"BUCC 2018 ({name}, {kind})"
                    entry = score_entry("BitextMining", shown, "bucc2018", "f1", margin.f1)
                    yield f"BUCC 2018 {name}, {kind}, F1", margin.f1, entry
        else:
            for task, subsets in result.tasks.items():
                for subset, scores in subsets.items():
                    share = scores.main_score
                    entry = _mteb_entry("mteb", f"{task}/{subset}", f"mteb/{task.lower()}", "main_score", share)
                    yield f"mteb {task}, {subset}", share, entry


def _mteb_entry(task: str, dataset: str, address: str, metric: str, share: float | None) -> list[EvalResult]:
    """An entry for data that mteb knows; `dataset` may name a subset after a slash."""
    name, _, subset = dataset.partition("/")
    shown = f"MTEB {name} ({subset})" if subset else f"MTEB {name}"
    return score_entry(task, shown, address, metric, share, dataset_config=subset or "default")


def _result(record: Record[Any], model: str | Path, file: str | Path) -> TestResult | None:
    wanted = _last_part(str(model))
    found = [result for name, result in record.run.models.items() if _last_part(name) == wanted]
    if len(found) != 1:
        known = one_line(", ".join(record.run.models), 200)
        which = f"{len(found)} of them" if found else "none of them"
        seen = f"scores of {known}, {which} of a model called {wanted}"
        raise EvaluationError(f"{file}: {seen}; make the record with `st-paragram evaluate {model} --json`")
    if isinstance(found[0], get_args(TestResult)):
        result: TestResult = found[0]
        return result
    logger.warning(f"{file}: a model card has no place for scores of {record.benchmark}; they are left out")
    return None


def _last_part(name: str) -> str:
    return Path(name.partition("@")[0]).resolve().name
