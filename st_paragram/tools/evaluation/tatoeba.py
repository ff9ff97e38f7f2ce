"""Tatoeba: retrieval of translations by nearest neighbor (Artetxe and Schwenk, TACL 2019).

The test sets are files `xxx-eng.tsv`, rows `foreign TAB English`, or come from the Hugging Face hub.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.bitext_mining.candidates import best_neighbors
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Found, Request
from st_paragram.tools.evaluation.files import Translations, inner_folder, read_translations
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.evaluation.sets import fetch
from st_paragram.tools.neighbors.exact import nearest_both_ways
from st_paragram.tools.neighbors.results import Vectors

Rows = NDArray[np.int64]

#: The test sets go by ISO 639-3 codes; these also by the two letters used elsewhere in this project.
CODES = {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "ru": "rus", "tr": "tur", "zh": "cmn"}
ENGLISH = ("en", "eng")
ERROR = "error"  # of the nearest neighbor by cosine, mean of both directions: the papers' figure
_PAIRS = 1000  # of each test set with published figures
_HUB = ("mteb/tatoeba-bitext-mining", "69e8f12da6e31d59addadda9a9c8a2e601a0e282")  # the revision that mteb takes
_FILE = re.compile(r"([a-z]{3})-eng\.tsv")


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has test sets."""
    return bool(_files(data))


def run(request: Request) -> Found:
    """Score models on the test sets of a folder or of the hub."""
    sets = read_tatoeba(request.data, request.languages, request.hub)

    def scored(model: TextEncoder) -> dict[str, dict[str, float]]:
        return {each.name: retrieval_errors(embed(model, each.first), embed(model, each.second)) for each in sets}

    sizes = {each.name: len(each) for each in sets}
    scores = [
        Score(model, "tatoeba", language, measure, value, items=sizes[language])
        for model, languages in score_each(request.models, scored, request.untrained).items()
        for language, measures in languages.items()
        for measure, value in measures.items()
    ]
    return scores, tables(scores)


def read_tatoeba(data: str | Path | None, languages: Sequence[str] = (), hub: bool = False) -> list[Translations]:
    """Read the test sets of a folder (its folder `tatoeba`, or itself), or of the hub if it has none.

    Languages are ISO 639-3 codes, or two letters for those of `CODES`; all that there are if none is named (of the
    hub's, those of `CODES`). English, the other side of every set, means nothing here.
    """
    files = _files(Path(data)) if data is not None else {}
    named = [CODES.get(code, code) for code in languages if code not in ENGLISH]
    if hub and not files:
        read = {code: _fetch(code) for code in dict.fromkeys(named or CODES.values())}
        return list(read.values())
    if not files:
        raise EvaluationError(f"{data}: no Tatoeba test sets; files are named like spa-eng.tsv (foreign TAB English)")
    if absent := [code for code in named if code not in files]:
        raise EvaluationError(f"{data}: no test set for {', '.join(absent)}; there are {len(files)}: {' '.join(files)}")
    wanted = dict.fromkeys(named or files)
    return [read_translations(TextSource((str(files[code]),), (code, "eng")), code) for code in wanted]


def _files(data: Path) -> dict[str, Path]:
    folder = inner_folder(data, "tatoeba")
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return {match[1]: path for path in paths if (match := _FILE.fullmatch(path.name))}


def _fetch(code: str) -> Translations:
    first, second = zip(*fetch(code, *_HUB, f"{code}-eng", "test", ("sentence1", "sentence2")), strict=True)
    return Translations(code, list(first), list(second))


def retrieval_errors(first: Vectors, second: Vectors, k: int = DEFAULT_K) -> dict[str, float]:
    """Score the retrieval of translations in both directions, by cosine, by margin (ratio), and as mteb counts.

    Args:
        first: embeddings of n sentences, float32 (n, D), rows of length 1.
        second: those of their translations, in the same order.
        k: neighbors that make a margin's background, fewer if there are not as many sentences.
    """
    if len(first) != len(second):
        raise EvaluationError(f"{len(first)} sentences and {len(second)} translations; each needs its translation")
    forward, backward = nearest_both_ways(first, second, k)
    cosine = [_misses(found.indices[:, 0]) for found in (forward, backward)]
    both = ((forward, backward), (backward, forward))
    margin = [_misses(best_neighbors(own, other, Margin.RATIO)[0]) for own, other in both]
    found = found_by_mteb(first, second)
    return {
        f"{ERROR} to English": cosine[0],
        f"{ERROR} from English": cosine[1],
        ERROR: fmean(cosine),
        "margin error to English": margin[0],
        "margin error from English": margin[1],
        "margin error": fmean(margin),
        "accuracy": 1 - _misses(found),
        "F1": weighted_f1(found),
    }


def found_by_mteb(first: Vectors, second: Vectors) -> Rows:
    """Nearest neighbors as mteb 2 looks for them (its `BitextMiningEvaluator`), int64 (n,).

    Sentences with the same words have one vector; which of them is "nearest" is a matter of rounding there, so only
    the same steps give the same figures: rows are brought to length 1 again, and looked for in blocks of 100.
    """
    query, corpus = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in (first, second))
    return np.concatenate([(query[n : n + 100] @ corpus.T).argmax(axis=1) for n in range(0, len(query), 100)])


def weighted_f1(found: Rows) -> float:
    """F1 as mteb counts it: sentences as classes of one member each, the mean of their F1.

    A class whose one member was found has recall 1 and, if c queries in all chose it, precision 1 / c. `found` is for
    each of n queries the row chosen, right if it is the query's own number, int64 (n,).
    """
    hits = found == np.arange(len(found))
    chosen = np.bincount(found, minlength=len(found))[: len(found)]
    return float(np.where(hits, 2 / (1 + chosen), 0.0).mean())


def tables(scores: list[Score]) -> Iterator[str]:
    """A table for each model, and one of all with published rows, part by part."""
    yield "It is an error if the nearest neighbor is not the translation. Accuracy and F1 are as mteb counts them.\n"
    for model in dict.fromkeys(score.model for score in scores):
        own = [score for score in scores if score.model == model]
        rows = report.pivot([*own, *_means(own)], lambda s: s.measure, lambda s: f"{s.set} ({s.items})", first="pairs")
        yield f"### Tatoeba, {model}: errors x 100 of the nearest neighbor\n\n{rows}\n"
    *languages, average = next(iter(report.published()["tatoeba"].values()))
    errors = [score for score in scores if score.measure == ERROR and score.set in languages]
    altered = list(dict.fromkeys(score.set for score in errors if score.items != _PAIRS))
    for model in dict.fromkeys(score.model for score in errors):
        own = [score for score in errors if score.model == model]
        errors += [replace(s, set=average) for s in _means(own) if len(own) == len(languages)]
    if not altered:
        yield from report.section("Tatoeba: mean error x 100 by cosine, with published rows", errors, known="tatoeba")
    else:
        yield report.not_comparable(altered)


def _means(scores: list[Score]) -> list[Score]:
    """The mean of all languages of each measure, if there are several."""
    by_measure: dict[str, list[Score]] = {}
    for score in scores:
        by_measure.setdefault(score.measure, []).append(score)
    return [
        replace(
            own[0], set=f"mean of {len(own)}", value=fmean(s.value or 0 for s in own), items=sum(s.items for s in own)
        )
        for own in by_measure.values()
        if len(own) > 1
    ]


def _misses(found: Rows) -> float:
    return float((found != np.arange(len(found))).mean())
