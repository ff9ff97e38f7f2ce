"""BUCC 2018: find the translations in two comparable texts, with F1.

Zweigenbaum, Sharoff and Rapp (BUCC 2018) define the task; the margins are those of Artetxe and
Schwenk (ACL 2019). Each margin score gives candidate pairs, and a threshold on it decides which are
extracted. The threshold is chosen for the highest F1 on texts with known answers, then applied to
others. A threshold chosen on the scored texts themselves is an oracle, so its F1 is an upper bound.
Any other texts in this format work as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from st_paragram.core.arrays import Integers, Mask
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.bitext_mining.candidates import ScoredPairs, candidate_pairs
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.threshold import Extraction, best_threshold, extract
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.files import inner_folder
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.retrieval_sets import TextFile, read_judgments, read_texts
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.neighbors.exact import nearest_both_ways

#: Names of the margins in scores.
LABELS = {Margin.RATIO: "ratio", Margin.DISTANCE: "distance", Margin.ABSOLUTE: "cosine"}
_COSINE_F1 = "cosine F1"
_PUBLISHED_NOTE = (
    "The published rows are for the papers' data of BUCC, with a threshold from training data. Your"
    " texts are not compared with these data."
)
_HALF = " half"  # ending of the set of scores with a threshold from the other half
_GOLD = re.compile(r"([a-z]{2,3}-[a-z]{2,3})\.(test|sample|training)\.gold")
_PARTS = ("training", "sample", "test")  # the last part that a folder has is scored


@dataclass(frozen=True)
class ComparableTexts:
    """Two texts in which some sentences are translations of each other."""

    name: str  # prefix of the file names, e.g. "zh-en.sample"
    source: dict[str, str]  # id -> sentence
    target: dict[str, str]
    # source and target rows that are translations, (g, 2), without repeated pairs
    gold: Integers


@dataclass(frozen=True)
class BuccData:
    """The texts to score."""

    texts: dict[str, ComparableTexts]  # by language pair
    training: ComparableTexts | None = None  # texts on which to choose the thresholds


def find(data: Path, benchmark: str) -> dict[str, Path]:
    """Return language pair -> file prefix of its test set, or else its sample or training set.

    The files are in the subfolder `bucc2018` or in the data folder itself, directly or one folder
    deeper.
    """
    folder = inner_folder(data, "bucc2018")
    files = []
    for path in [*folder.glob("*.gold"), *folder.glob("*/*.gold")]:
        match = _GOLD.fullmatch(path.name)
        if match:
            files.append((match[1], _PARTS.index(match[2]), path.with_suffix("")))
    return {pair: prefix for pair, _, prefix in sorted(files)}


def read(request: Request) -> BuccData:
    """Read the texts of the requested languages (default: all), and those to choose thresholds."""
    prefixes = request.choose(
        find(request.folder, "bucc"),
        form="files are named like zh-en.sample.zh, .en and .gold",
        language=lambda pair: pair.partition("-")[0],
    )
    texts = {pair: read_comparable_texts(prefix, pair) for pair, prefix in prefixes.items()}
    if not request.train_gold:
        return BuccData(texts)
    if len(texts) > 1:
        raise SettingsError(
            f"--train-gold applies to one language pair, not to {', '.join(texts)}; choose one by"
            " its first language with --languages"
        )
    (pair,) = texts
    training = read_comparable_texts(request.train_gold.removesuffix(".gold"), pair)
    return BuccData(texts, training)


def read_comparable_texts(prefix: str | Path, pair: str) -> ComparableTexts:
    """Read PREFIX.zh and PREFIX.en, rows `id TAB sentence`, and PREFIX.gold, `zh id TAB en id`."""
    first, second = pair.split("-")
    source_path = _path(prefix, first)
    target_path = _path(prefix, second)
    gold_path = _path(prefix, "gold")
    source = TextFile(source_path, read_texts(source_path))
    target = TextFile(target_path, read_texts(target_path))
    gold = []
    for judgment in read_judgments(gold_path, source, target):
        gold.append((judgment.query, judgment.document))
    return ComparableTexts(
        name=Path(prefix).name,
        source=source.texts,
        target=target.texts,
        gold=np.array(gold, np.int64).reshape(-1, 2),
    )


def _path(prefix: str | Path, ending: str) -> Path:
    path = Path(f"{prefix}.{ending}")
    if not path.is_file():
        raise EvaluationError(
            f"{path}: no such file; BUCC's files are named like zh-en.sample.zh, .en and .gold"
        )
    return path


def score(name: str, model: TextEncoder, data: BuccData) -> Iterator[Score]:
    """Yield the figures of each margin.

    The threshold is from the training texts. Without these, there are two: from the same gold, and
    from one half for the other.
    """
    thresholds = {}
    if data.training is not None:
        for margin, pairs in mine(model, data.training).items():
            is_gold = in_gold(pairs, data.training)
            gold = len(data.training.gold)
            thresholds[margin] = best_threshold(pairs.scores, is_gold, gold)
    for pair, texts in data.texts.items():
        for margin, pairs in mine(model, texts).items():
            is_gold = in_gold(pairs, texts)
            gold = len(texts.gold)
            if thresholds:
                extraction = extract(pairs.scores, is_gold, gold, threshold=thresholds[margin])
                yield from _scores(name, pair, margin, extraction)
                continue
            oracle = best_threshold(pairs.scores, is_gold, gold)
            extraction = extract(pairs.scores, is_gold, gold, threshold=oracle)
            yield from _scores(name, pair, margin, extraction)
            extraction = by_halves(pairs, is_gold, texts)
            yield from _scores(name, f"{pair}{_HALF}", margin, extraction)


def _scores(name: str, label: str, margin: Margin, extraction: Extraction) -> Iterator[Score]:
    for figure, value in extraction.figures.items():
        yield Score(
            model=name,
            benchmark="bucc",
            set=label,
            measure=f"{LABELS[margin]} {figure}".replace("f1", "F1"),
            value=value,
            items=extraction.gold,
        )


def mine(
    model: TextEncoder, texts: ComparableTexts, k: int = DEFAULT_K
) -> dict[Margin, ScoredPairs]:
    """Return the candidate pairs for each margin score (`Margin.ABSOLUTE` is the plain cosine).

    Sentences without a known token are in no pair.
    """
    source = embed(model, list(texts.source.values()))
    target = embed(model, list(texts.target.values()))
    source_rows = np.flatnonzero(source.any(axis=1))
    target_rows = np.flatnonzero(target.any(axis=1))
    if not (len(source_rows) and len(target_rows)):
        none = np.zeros(0, np.int64)
        return dict.fromkeys(Margin, ScoredPairs(none, none, np.zeros(0)))
    forward, backward = nearest_both_ways(source[source_rows], target[target_rows], k)
    candidates = {}
    for margin in Margin:
        pairs = candidate_pairs(forward, backward, margin)
        candidates[margin] = ScoredPairs(
            source_rows[pairs.source], target_rows[pairs.target], pairs.scores
        )
    return candidates


def in_gold(pairs: ScoredPairs, texts: ComparableTexts) -> Mask:
    """Return whether each candidate is a gold pair, (c,)."""
    width = len(texts.target)
    keys = pairs.source * width + pairs.target
    gold_keys = texts.gold[:, 0] * width + texts.gold[:, 1]
    return np.isin(keys, gold_keys)


def by_halves(
    pairs: ScoredPairs, is_gold: Mask, texts: ComparableTexts, seed: int = 0
) -> Extraction:
    """Choose a threshold on one half of the source sentences, and extract pairs from the other.

    Candidates and gold pairs belong to the half of their source sentence: one bit of a hash of its
    id and the seed.
    """
    half = np.array([_half(key, seed) for key in texts.source])
    half_of_gold = half[texts.gold[:, 0]]
    half_of_pairs = half[pairs.source]
    first = half_of_pairs == 0
    first_gold = int((half_of_gold == 0).sum())
    threshold = best_threshold(pairs.scores[first], is_gold[first], first_gold)
    second = half_of_pairs == 1
    second_gold = int((half_of_gold == 1).sum())
    return extract(pairs.scores[second], is_gold[second], second_gold, threshold=threshold)


def _half(key: str, seed: int) -> int:
    digest = hashlib.sha256(f"{seed} {key}".encode()).digest()
    return digest[0] & 1


def tables(scores: list[Score], data: BuccData) -> Iterator[str]:
    """Yield a table for each pair of texts and each way to choose thresholds."""
    for name, of_set in report.grouped(scores, report.SET).items():
        if data.training is not None:
            threshold = f"threshold chosen on {data.training.name}"
        elif name.endswith(_HALF):
            threshold = "threshold chosen on one half of the gold, scored on the other"
        else:
            threshold = "oracle threshold (chosen on the same gold)"
        texts = data.texts[name.removesuffix(_HALF)]
        yield from report.section(
            f"BUCC {texts.name}: {threshold}; x 100 except thresholds",
            of_set,
            column=_figure,
            row=_model_and_margin,
        )
    pairs = report.published_columns("bucc")
    by_cosine = []
    for score in scores:
        if score.measure == _COSINE_F1 and score.set in pairs:
            by_cosine.append(score)
    yield from report.section(
        "BUCC: F1 x 100 by cosine, with published rows",
        by_cosine,
        note=_PUBLISHED_NOTE,
        published_table="bucc",
    )


def _figure(score: Score) -> str:
    return score.measure.partition(" ")[2]


def _model_and_margin(score: Score) -> str:
    margin = score.measure.partition(" ")[0]
    return f"{score.model}, {margin}"
