"""Find translations in comparable texts, with F1 as in the BUCC 2018 shared task.

Each margin score gives candidate pairs, and a threshold on it decides which are extracted. The
threshold is chosen for the highest F1 on texts with known answers, then applied to others. A
threshold chosen on the scored texts themselves is an oracle, so its F1 is an upper bound. Any other
texts in this format work as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.formatting import listed
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.candidates import ScoredPairs, candidate_pairs
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.threshold import Extraction, best_threshold, extract
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import ComparableTexts, inner_folder, read_comparable_texts
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.neighbors.exact import nearest_both_ways

#: Names of the margins in scores.
LABELS = {Margin.RATIO: "ratio", Margin.DISTANCE: "distance", Margin.ABSOLUTE: "cosine"}
HALF = "half"
_GOLD = re.compile(r"([a-z]{2,3}-[a-z]{2,3})\.(test|sample|training)\.gold")
#: Language pair -> texts; and the training texts, if thresholds are chosen on them.
Texts = tuple[dict[str, ComparableTexts], ComparableTexts | None]


def find(data: Path, name: str) -> dict[str, Path]:
    """Return language pair -> file prefix of its test set, or else its sample, or else its training
    set.

    The files are in the subfolder `bucc2018` or in the data folder itself, directly or one folder
    deeper.
    """
    folder = inner_folder(data, "bucc2018")
    paths = [path for pattern in ("*.gold", "*/*.gold") for path in folder.glob(pattern)]
    matches = ((match, path) for path in paths if (match := _GOLD.fullmatch(path.name)))
    files = sorted(
        (match[1], "training sample test".index(match[2]), path.with_suffix(""))
        for match, path in matches
    )
    return {pair: path for pair, _, path in files}


def read(request: Request) -> Texts:
    """Read the texts of the requested languages (default: all), and the texts on which to choose
    thresholds.
    """
    form = "files are named like zh-en.sample.zh, .en and .gold"
    files = request.choose(
        find(request.data or Path(), ""), form, lambda pair: pair.partition("-")[0]
    )
    texts = {pair: read_comparable_texts(prefix, pair) for pair, prefix in files.items()}
    if not request.train_gold:
        return texts, None
    if len(files) > 1:
        seen = f"--train-gold applies to one language pair, not to {', '.join(files)}"
        raise SettingsError(f"{seen}; choose one by its first language with --languages")
    return texts, read_comparable_texts(request.train_gold.removesuffix(".gold"), next(iter(files)))


def score(name: str, model: TextEncoder, data: Texts) -> Iterator[Score]:
    """Yield the figures of each margin, at a threshold from the training texts or else at the two
    of the same gold.
    """
    sets, training = data
    learned = dict[Margin, float]()
    if training is not None:
        for margin, pairs in mine(model, training).items():
            learned[margin] = best_threshold(
                pairs.scores, in_gold(pairs, training), len(training.gold)
            )
    for pair, texts in sets.items():
        for margin, pairs in mine(model, texts).items():
            right, gold = in_gold(pairs, texts), len(texts.gold)
            threshold = learned[margin] if learned else best_threshold(pairs.scores, right, gold)
            extractions = {pair: extract(pairs.scores, right, gold, threshold)}
            if not learned:
                extractions[f"{pair} {HALF}"] = by_halves(pairs, right, texts)
            for label, result in extractions.items():
                for figure, value in result.figures.items():
                    measure = f"{LABELS[margin]} {figure}".replace("f1", "F1")
                    yield Score(name, "bucc", label, measure, value, result.gold)


def mine(
    model: TextEncoder, texts: ComparableTexts, k: int = DEFAULT_K
) -> dict[Margin, ScoredPairs]:
    """Return the candidate pairs for each margin score (`Margin.ABSOLUTE` is the plain cosine).

    Sentences without a known token are in no pair.
    """
    source, target = (embed(model, list(side.values())) for side in (texts.source, texts.target))
    sources = np.flatnonzero(source.any(axis=1))
    targets = np.flatnonzero(target.any(axis=1))
    if not (len(sources) and len(targets)):
        none = np.zeros(0, np.int64)
        return {margin: ScoredPairs(none, none, np.zeros(0)) for margin in Margin}
    neighbors = nearest_both_ways(source[sources], target[targets], k)
    candidates = {margin: candidate_pairs(*neighbors, margin) for margin in Margin}
    return {
        margin: ScoredPairs(sources[pairs.source], targets[pairs.target], pairs.scores)
        for margin, pairs in candidates.items()
    }


def in_gold(pairs: ScoredPairs, texts: ComparableTexts) -> NDArray[np.bool_]:
    """Return whether each candidate is a gold pair, (c,)."""
    width = len(texts.target)
    right: NDArray[np.bool_] = np.isin(
        pairs.source * width + pairs.target, texts.gold[:, 0] * width + texts.gold[:, 1]
    )
    return right


def by_halves(
    pairs: ScoredPairs, right: NDArray[np.bool_], texts: ComparableTexts, seed: int = 0
) -> Extraction:
    """Choose a threshold on one half of the source sentences, and extract pairs from the other
    half.

    Candidates and gold pairs belong to the half of their source sentence: one bit of a hash of its
    id and the seed.
    """
    half = np.array(
        [hashlib.sha256(f"{seed} {key}".encode()).digest()[0] & 1 for key in texts.source]
    )
    gold, side = half[texts.gold[:, 0]], half[pairs.source]
    threshold = best_threshold(pairs.scores[side == 0], right[side == 0], int((gold == 0).sum()))
    return extract(pairs.scores[side == 1], right[side == 1], int((gold == 1).sum()), threshold)


def tables(scores: list[Score], data: Texts) -> Iterator[str]:
    """Yield a table for each pair of texts and each way to choose thresholds."""
    sets, training = data
    for name in dict.fromkeys(score.set for score in scores):
        pair, _, half = name.partition(" ")
        chosen = (
            f"threshold chosen on {training.name}"
            if training
            else "oracle threshold (chosen on the same gold)"
        )
        if half:
            chosen = "threshold chosen on one half of the gold, scored on the other"
        yield from report.section(
            f"BUCC {sets[pair].name}: {chosen}; x 100 except thresholds",
            [score for score in scores if score.set == name],
            column=lambda score: score.measure.partition(" ")[2],
            row=lambda score: f"{score.model}, {score.measure.partition(' ')[0]}",
        )
    if known := [pair for pair in next(iter(report.published()["bucc"].values())) if pair in sets]:
        yield (
            f"Published figures for {listed(known)} are omitted, since they are on test texts that"
            " are not public."
        )
