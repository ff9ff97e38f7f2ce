"""Scores as entries of a model card's `model-index`, the part of its metadata that the hub shows beside the card."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from huggingface_hub import EvalResult

from st_paragram.core.encoding.training_record import TrainingRecord

#: How a training record calls the model that was saved.
AFTER = "after training"
_BUILT_IN = "built-in-"


def score_entry(task: str, name: str, address: str, metric: str, share: float, **more: Any) -> EvalResult:  # noqa: ANN401
    """One score.

    Args:
        task: its kind, as the hub calls it ("STS", "BitextMining").
        name: of the data, for people.
        address: of the data on the hub, or a short name for data that are not there.
        metric: e.g. "cosine_spearman".
        share: the score, -1 .. 1; the entry has it x 100, rounded to two places.
        more: further fields of `EvalResult`, such as `dataset_config`.
    """
    value = round(100 * share, 2)
    return EvalResult(
        task_type=task, dataset_name=name, dataset_type=address, metric_type=metric, metric_value=value, **more
    )


def development_entries(record: TrainingRecord) -> list[EvalResult]:
    """Entries of what the trained model scored on development pairs and held-out translations.

    A correlation that does not exist, since all scores were alike, has no entry; nor have the built-in pairs, which are
    too few and too rough to compare models by.
    """
    return [*_correlations(record), *_accuracies(record)]


def _correlations(record: TrainingRecord) -> Iterator[EvalResult]:
    for score in record.scores:
        shares = {"pearson_cosine": score.correlation.pearson, "spearman_cosine": score.correlation.spearman}
        for metric, share in shares.items():
            if score.model == AFTER and math.isfinite(share) and not score.data.startswith(_BUILT_IN):
                yield score_entry("semantic-similarity", *_names(score.data), metric, share)


def _accuracies(record: TrainingRecord) -> Iterator[EvalResult]:
    for score in record.translations:
        if score.model == AFTER and math.isfinite(score.accuracy):
            yield score_entry("translation", *_names(score.data), "mean_accuracy", score.accuracy)


def _names(data: str) -> tuple[str, str]:
    """How development data are called: for people, and in one word."""
    return f"{data} (development)", re.sub(r"[^a-z0-9]+", "-", data.lower()).strip("-") or "development"
