"""F1 of finding translations in comparable texts, as the BUCC 2018 shared task counts it.

Every margin score gives a list of candidate pairs. A threshold on the score decides which are extracted; it is chosen
where F1 is highest on texts with known answers and applied to others. Chosen on the very texts that are scored it is
an oracle's: an upper bound. Files in this form of any other texts do as well.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.words import listed
from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.bitext_mining.candidates import ScoredPairs, candidate_pairs
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.threshold import Extraction, best_threshold, extract
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Found, Request
from st_paragram.tools.evaluation.files import ComparableTexts, inner_folder, read_comparable_texts
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.neighbors.exact import nearest_both_ways
from st_paragram.tools.neighbors.results import Vectors

logger = logging.getLogger(__name__)

Mined = dict[Margin, ScoredPairs]
#: What the margins are called in scores.
LABELS = {Margin.RATIO: "ratio", Margin.DISTANCE: "distance", Margin.ABSOLUTE: "cosine"}
HALF = "half"
_GOLD = re.compile(r"([a-z]{2,3}-[a-z]{2,3})\.(test|sample|training)\.gold")


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has texts and gold of BUCC."""
    return bool(bucc_files(data))


def bucc_files(data: str | Path) -> dict[str, Path]:
    """Pair of languages -> prefix of its test set, its sample or its training set, the first there.

    The files are in the folder `bucc2018` or in the folder itself, or in a folder of theirs named by the pair.
    """
    folder = inner_folder(data, "bucc2018")
    paths = [path for pattern in ("*.gold", "*/*.gold") for path in folder.glob(pattern)]
    matches = sorted(
        (match[1], -"training sample test".index(match[2]), path)
        for path in paths
        if (match := _GOLD.fullmatch(path.name))
    )
    found: dict[str, Path] = {}
    for pair, _, path in matches:
        found.setdefault(pair, path.with_suffix(""))
    return found


def read_bucc(data: str | Path, languages: Sequence[str] = ()) -> dict[str, ComparableTexts]:
    """The texts of a folder of evaluation data: those of all pairs with one of the languages, or of all."""
    files = bucc_files(data)
    wanted = {
        pair: path for pair, path in files.items() if not languages or not {*pair.split("-")[:1]}.isdisjoint(languages)
    }
    if not wanted:
        seen = f"no texts of {', '.join(languages)}, only {', '.join(files)}" if files else "no files of BUCC 2018"
        raise EvaluationError(f"{data}: {seen}; they are named like zh-en.sample.zh, .en and .gold")
    return {pair: read_comparable_texts(path, pair) for pair, path in wanted.items()}


def run(request: Request) -> Found:
    """Score models on the texts of a folder, by thresholds chosen on them and on one half, or on a training set."""
    texts, training = read_bucc(request.folder, request.languages), None
    if request.train_gold is not None:
        if len(texts) > 1:
            seen = f"--train-gold is of one pair of languages, not of {', '.join(texts)}"
            raise SettingsError(f"{seen}; name the other language with --languages")
        training = read_comparable_texts(request.train_gold.removesuffix(".gold"), next(iter(texts)))
    found = score_each(request.models, lambda model: score_bucc(model, texts, training), request.untrained)
    scores = [
        Score(model, "bucc", name, f"{LABELS[margin]} {measure}", value, items=each.gold)
        for model, sets in found.items()
        for name, margins in sets.items()
        for margin, each in margins.items()
        for measure, value in _measures(each).items()
    ]
    return scores, tables(scores, texts, training)


def score_bucc(
    model: TextEncoder, texts: Mapping[str, ComparableTexts], training: ComparableTexts | None = None
) -> dict[str, dict[Margin, Extraction]]:
    """What each margin extracts: by thresholds of the training texts; or by the best ones, and by those of one half."""
    learned = thresholds(_mine_texts(model, training), training) if training else None
    found = {}
    for pair, each in texts.items():
        mined = _mine_texts(model, each)
        found[pair] = extractions(mined, each, learned or thresholds(mined, each))
        if training is None:
            found[f"{pair} {HALF}"] = half_extractions(mined, each)
    return found


def mine(source: Vectors, target: Vectors, k: int = DEFAULT_K) -> Mined:
    """Candidate pairs by each margin score (`Margin.ABSOLUTE` is the cosine alone), from rows of length 1."""
    forward, backward = nearest_both_ways(source, target, k)
    return {margin: candidate_pairs(forward, backward, margin) for margin in Margin}


def thresholds(mined: Mined, texts: ComparableTexts) -> dict[Margin, float]:
    """For each margin score the threshold of the highest F1 against the texts' gold."""
    gold = len(texts.gold)
    return {margin: best_threshold(pairs.scores, in_gold(pairs, texts), gold) for margin, pairs in mined.items()}


def extractions(mined: Mined, texts: ComparableTexts, at: Mapping[Margin, float]) -> dict[Margin, Extraction]:
    """What the thresholds `at` extract, counted against the texts' gold."""
    gold = len(texts.gold)
    return {margin: extract(pairs.scores, in_gold(pairs, texts), gold, at[margin]) for margin, pairs in mined.items()}


def half_extractions(mined: Mined, texts: ComparableTexts, seed: int = 0) -> dict[Margin, Extraction]:
    """The same with thresholds chosen on one half of the source sentences, counted on the other half.

    Candidates and gold pairs belong to the half of their source sentence, which follows from its id and the seed
    alone (a bit of a hash).
    """
    half = np.array([hashlib.sha256(f"{seed} {key}".encode()).digest()[0] & 1 for key in texts.source])
    gold = half[texts.gold[:, 0]]
    result = {}
    for margin, pairs in mined.items():
        right, side = in_gold(pairs, texts), half[pairs.source]
        threshold = best_threshold(pairs.scores[side == 0], right[side == 0], int((gold == 0).sum()))
        result[margin] = extract(pairs.scores[side == 1], right[side == 1], int((gold == 1).sum()), threshold)
    return result


def in_gold(pairs: ScoredPairs, texts: ComparableTexts) -> NDArray[np.bool_]:
    """Whether each candidate is a gold pair, (c,)."""
    width = len(texts.target)
    found: NDArray[np.bool_] = np.isin(pairs.source * width + pairs.target, texts.gold[:, 0] * width + texts.gold[:, 1])
    return found


def tables(
    scores: list[Score], texts: Mapping[str, ComparableTexts], training: ComparableTexts | None
) -> Iterator[str]:
    """A table for each pair of texts and way to choose thresholds, part by part."""
    for name in dict.fromkeys(score.set for score in scores):
        chosen = "oracle threshold (chosen on the same gold)"
        if training:
            chosen = f"threshold chosen on {training.name}"
        elif name.endswith(HALF):
            chosen = "threshold chosen on one half of the gold, scored on the other"
        own = [score for score in scores if score.set == name]
        rows = report.pivot(
            own, lambda s: s.measure.partition(" ")[2], lambda s: f"{s.model}, {s.measure.partition(' ')[0]}"
        )
        yield f"### BUCC {texts[name.partition(' ')[0]].name}: {chosen}; x 100 but for thresholds\n\n{rows}\n"
    if known := [pair for pair in next(iter(report.published()["bucc"].values())) if pair in texts]:
        yield f"There are published figures for {listed(known)}, left out since they are on the test texts, not public."


def _mine_texts(model: TextEncoder, texts: ComparableTexts) -> Mined:
    counts = f"{len(texts.source):,} x {len(texts.target):,} sentences, {len(texts.gold):,} gold pairs"
    logger.info(f"{texts.name}: {counts}")
    return mine(embed(model, list(texts.source.values())), embed(model, list(texts.target.values())))


def _measures(found: Extraction) -> dict[str, float | None]:
    threshold = found.threshold if math.isfinite(found.threshold) else None
    return {"threshold": threshold, "precision": found.precision, "recall": found.recall, "F1": found.f1}
