"""How good mined pairs of ids are against known ones, as the BUCC shared task counts it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from st_paragram.core.tables import MISSING, hundredths
from st_paragram.errors import TextError
from st_paragram.tools.bitext_mining.candidates import ScoredPairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.threshold import Extraction
from st_paragram.tools.evaluation.bucc import LABELS, extractions, half_extractions, thresholds
from st_paragram.tools.evaluation.bucc_files import ComparableTexts
from st_paragram.tools.evaluation.results import BuccScores, MarginResult

HALF, ORACLE = "half", "oracle"
HEAD = ("threshold chosen", "score", "threshold", "extracted", "right", "gold", "precision", "recall", "F1")
_HOW = {HALF: "on the other half", ORACLE: "on the same pairs (oracle)"}

Scored = dict[str, dict[Margin, Extraction]]


def read_mined(path: Path, texts: ComparableTexts) -> ScoredPairs:
    """Read `score TAB id TAB id` as rows of the texts.

    Raises:
        TextError: A line is of another form, or an id is not in the texts.
    """
    rows = [{key: row for row, key in enumerate(ids)} for ids in (texts.source_ids, texts.target_ids)]
    source, target, scores = list[int](), list[int](), list[float]()
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            try:
                score, one, other = line.rstrip("\n").split("\t")
                scores.append(float(score))
                source.append(rows[0][one])
                target.append(rows[1][other])
            except (ValueError, KeyError) as error:
                raise TextError(
                    f"{path}: line {number}: not `score TAB id TAB id` of {texts.name}: {line!r}"
                ) from error
    return ScoredPairs(np.array(source, np.int64), np.array(target, np.int64), np.array(scores, np.float64))


def score_mined(mined: Mapping[Margin, ScoredPairs], texts: ComparableTexts, seed: int = 0) -> Scored:
    """By each margin: threshold chosen on one half of the source ids and counted on the other, and the best threshold.

    Args:
        mined: Candidate pairs of each margin, without a threshold.
        texts: With the known pairs.
        seed: Of the halves.
    """
    mined = dict(mined)
    return {
        HALF: half_extractions(mined, texts, seed),
        ORACLE: extractions(mined, texts, thresholds(mined, texts)),
    }


def score_rows(scored: Scored) -> list[list[str]]:
    """Rows of a table under `HEAD`; precision, recall and F1 x 100."""
    return [
        [
            _HOW[how],
            LABELS[margin],
            f"{row.threshold:.4f}" if np.isfinite(row.threshold) else MISSING,
            *(f"{count:,}" for count in (row.extracted, row.right, row.gold)),
            *map(hundredths, (row.precision, row.recall, row.f1)),
        ]
        for how, by_margin in scored.items()
        for margin, row in by_margin.items()
    ]


def score_results(scored: Scored) -> dict[str, BuccScores]:
    """The same as results: how thresholds were chosen -> figures of each score."""
    return {
        how: BuccScores(
            next(iter(by_margin.values())).gold,
            {LABELS[margin]: MarginResult.of(found) for margin, found in by_margin.items()},
        )
        for how, by_margin in scored.items()
    }
