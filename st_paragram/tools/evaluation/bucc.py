"""F1 of finding translations in comparable texts, as the BUCC 2018 shared task counts it.

Every margin score gives a list of candidate pairs. A threshold on the score decides which are extracted; it is chosen
where F1 is highest on texts with known answers and applied to others. Chosen on the very texts that are scored it is
an oracle's: an upper bound. Files in this form of any other texts do as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.words import listed
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.candidates import ScoredPairs, candidate_pairs
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.threshold import Extraction, best_threshold, extract
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import ComparableTexts, inner_folder, read_comparable_texts
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.neighbors.exact import nearest_both_ways

#: What the margins are called in scores.
LABELS = {Margin.RATIO: "ratio", Margin.DISTANCE: "distance", Margin.ABSOLUTE: "cosine"}
HALF = "half"
_GOLD = re.compile(r"([a-z]{2,3}-[a-z]{2,3})\.(test|sample|training)\.gold")
#: Pair of languages -> texts; and training texts if thresholds are chosen on such.
Texts = tuple[dict[str, ComparableTexts], ComparableTexts | None]


def find(data: Path, name: str) -> dict[str, Path]:
    """Pair of languages -> prefix of its test set, its sample or its training set, the first there.

    The files are in the folder `bucc2018` or in the folder itself, or in a folder of theirs named by the pair.
    """
    folder = inner_folder(data, "bucc2018")
    paths = [path for pattern in ("*.gold", "*/*.gold") for path in folder.glob(pattern)]
    matches = ((match, path) for path in paths if (match := _GOLD.fullmatch(path.name)))
    found = sorted((match[1], "training sample test".index(match[2]), path.with_suffix("")) for match, path in matches)
    return {pair: path for pair, _, path in found}


def read(request: Request) -> Texts:
    """The texts of all pairs with one of the languages, or of all, and those to choose thresholds on."""
    form = "files are named like zh-en.sample.zh, .en and .gold"
    files = request.choose(find(request.data or Path(), ""), form, lambda pair: pair.partition("-")[0])
    texts = {pair: read_comparable_texts(prefix, pair) for pair, prefix in files.items()}
    if not request.train_gold:
        return texts, None
    if len(files) > 1:
        seen = f"--train-gold is of one pair of languages, not of {', '.join(files)}"
        raise SettingsError(f"{seen}; name the other language with --languages")
    return texts, read_comparable_texts(request.train_gold.removesuffix(".gold"), next(iter(files)))


def score(name: str, model: TextEncoder, data: Texts) -> Iterator[Score]:
    """What each margin extracts: by thresholds of the training texts; or by the best ones, and by those of one half."""
    sets, training = data
    learned = dict[Margin, float]()
    if training is not None:
        for margin, pairs in mine(model, training).items():
            learned[margin] = best_threshold(pairs.scores, in_gold(pairs, training), len(training.gold))
    for pair, texts in sets.items():
        for margin, pairs in mine(model, texts).items():
            right, gold = in_gold(pairs, texts), len(texts.gold)
            threshold = learned[margin] if learned else best_threshold(pairs.scores, right, gold)
            found = {pair: extract(pairs.scores, right, gold, threshold)}
            if not learned:
                found[f"{pair} {HALF}"] = by_halves(pairs, right, texts)
            for label, of in found.items():
                for measure, value in of.figures.items():
                    yield Score(name, "bucc", label, f"{LABELS[margin]} {measure}".replace("f1", "F1"), value, of.gold)


def mine(model: TextEncoder, texts: ComparableTexts, k: int = DEFAULT_K) -> dict[Margin, ScoredPairs]:
    """Candidate pairs by each margin score (`Margin.ABSOLUTE` is the cosine alone)."""
    source, target = (embed(model, list(side.values())) for side in (texts.source, texts.target))
    neighbors = nearest_both_ways(source, target, k)
    return {margin: candidate_pairs(*neighbors, margin) for margin in Margin}


def in_gold(pairs: ScoredPairs, texts: ComparableTexts) -> NDArray[np.bool_]:
    """Whether each candidate is a gold pair, (c,)."""
    width = len(texts.target)
    found: NDArray[np.bool_] = np.isin(pairs.source * width + pairs.target, texts.gold[:, 0] * width + texts.gold[:, 1])
    return found


def by_halves(pairs: ScoredPairs, right: NDArray[np.bool_], texts: ComparableTexts, seed: int = 0) -> Extraction:
    """What a threshold chosen on one half of the source sentences extracts, counted on the other half.

    Candidates and gold pairs belong to the half of their source sentence, which follows from its id and the seed
    alone (a bit of a hash).
    """
    half = np.array([hashlib.sha256(f"{seed} {key}".encode()).digest()[0] & 1 for key in texts.source])
    gold, side = half[texts.gold[:, 0]], half[pairs.source]
    threshold = best_threshold(pairs.scores[side == 0], right[side == 0], int((gold == 0).sum()))
    return extract(pairs.scores[side == 1], right[side == 1], int((gold == 1).sum()), threshold)


def tables(scores: list[Score], data: Texts) -> Iterator[str]:
    """A table for each pair of texts and way to choose thresholds, part by part."""
    sets, training = data
    for name in dict.fromkeys(score.set for score in scores):
        pair, _, half = name.partition(" ")
        chosen = f"threshold chosen on {training.name}" if training else "oracle threshold (of the same gold)"
        if half:
            chosen = "threshold chosen on one half of the gold, scored on the other"
        yield from report.section(
            f"BUCC {sets[pair].name}: {chosen}; x 100 but for thresholds",
            [score for score in scores if score.set == name],
            column=lambda score: score.measure.partition(" ")[2],
            row=lambda score: f"{score.model}, {score.measure.partition(' ')[0]}",
        )
    if known := [pair for pair in next(iter(report.published()["bucc"].values())) if pair in sets]:
        yield f"There are published figures for {listed(known)}, left out since they are on the test texts, not public."
