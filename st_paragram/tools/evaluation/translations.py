"""Retrieval of translations by nearest neighbor: Tatoeba, NTREX-128 and FLORES-200.

Tatoeba (Artetxe and Schwenk, TACL 2019) has files `xxx-eng.tsv` with rows `foreign TAB English`.
NTREX-128 (Federmann et al. 2022) and FLORES (Goyal et al. 2022; NLLB Team 2022) are texts in many
languages, parallel by line, in files such as `newstest2019-ref.deu.txt` and `deu_Latn.devtest`. All
are read from a folder or from the Hugging Face hub.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import Translations, fetch, inner_folder, read_translations
from st_paragram.tools.evaluation.scores import Score, embed, nearest_both_ways_of_known
from st_paragram.tools.neighbors.results import Vectors

Rows = NDArray[np.int64]

#: Two-letter code -> ISO 639-3 codes. The sets use ISO 639-3 codes, some with a script or region.
CODES = {
    "ar": ("ara", "arb"),
    "de": ("deu",),
    "es": ("spa",),
    "fr": ("fra",),
    "ru": ("rus",),
    "tr": ("tur",),
}
CODES |= {"zh": ("cmn", "zho"), "en": ("eng",)}
ERROR = "error"  # of nearest neighbors by cosine, mean of both directions, as in the papers
_SIZES = {"tatoeba": 1000, "ntrex": 1997}  # sentences per test set with published figures

#: Benchmark -> title in tables, pattern of its file names (the group is the language), and an
#: example of these names.
_NAMES = {
    "tatoeba": ("Tatoeba", r"([a-z]{3})-eng\.tsv", "spa-eng.tsv"),
    "ntrex": ("NTREX-128", r"newstest2019-(?:src|ref)\.([\w-]+)\.txt", "newstest2019-ref.spa.txt"),
    "flores": ("FLORES-200", r"(\w+)\.devtest", "spa_Latn.devtest"),
}
#: Benchmark -> data set on the hub, and the revision that mteb uses.
_HUB = {
    "tatoeba": ("mteb/tatoeba-bitext-mining", "69e8f12da6e31d59addadda9a9c8a2e601a0e282"),
    "ntrex": ("mteb/NTREXBitextMining", "66b8b27efc99658903127730575e9fa0cb9f075c"),
    "flores": ("mteb/FloresBitextMining", "2144d16cc15edd22d4a9237d12bff5f31f5c07fc"),
}
Data = tuple[str, list[Translations]]  # name of the benchmark, language pairs


def find(data: Path, name: str) -> dict[str, Path]:
    """Return language -> file in a folder of evaluation data (its subfolder with the benchmark's
    name, or itself).
    """
    matches = (
        (re.fullmatch(_NAMES[name][1], path.name), path)
        for path in sorted(inner_folder(data, name).iterdir())
    )
    return {match[1]: path for match, path in matches if match}


def read(request: Request) -> Data:
    """Read the data of a benchmark from a folder or from the hub.

    Languages are ISO 639-3 codes, two-letter codes in `CODES`, or two languages of a parallel text
    ("es-de"). Single languages are paired with English. By default, all languages of the folder are
    read, or those in `CODES` of the hub.
    """
    name = request.benchmark
    texts: dict[str, Any] = {**find(request.data, name)} if request.data else {}
    known = list(texts)
    if request.hub and not texts and name == "tatoeba":
        known = [codes[0] for codes in CODES.values()]
        texts = dict.fromkeys([*known, *(code for code in request.languages if code not in CODES)])
    elif request.hub and not texts:
        dataset = fetch(name, *_HUB[name], None, "devtest" if name == "flores" else "test")
        texts = {code: dataset[code] for code in dataset.column_names}
        known = [code for code in texts if any(_is(code, language) for language in CODES)]
    request.choose(texts, f"files are named like {_NAMES[name][2]}")
    wanted = [language for language in request.languages if not _is(language, "en")]
    wanted = wanted or [code for code in known if not _is(code, "en")]
    pairs = [pair for language in wanted for pair in _pairs(name, language, texts)]
    return name, [_translations(name, texts, *pair) for pair in dict.fromkeys(pairs)]


def _is(code: str, language: str) -> bool:
    """Return whether a code such as "zho-CN" or "zho_Hans" belongs to a language as the user named
    it.
    """
    return code == language or re.split("[-_]", code)[0] in CODES.get(language, (language,))


def _pairs(name: str, language: str, texts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs of codes for "es" (with English) or for "es-de" (in parallel texts)."""
    first, second = language, next((code for code in sorted(texts) if _is(code, "en")), "eng")
    if "-" in language and name != "tatoeba" and not any(_is(code, language) for code in texts):
        first, second = language.split("-", 1)
    firsts, seconds = ([code for code in texts if _is(code, side)] for side in (first, second))
    if not firsts or (not seconds and second != "eng"):
        raise EvaluationError(
            f"{name}: no test set for {language}; choose from these {len(texts)}: {' '.join(texts)}"
        )
    return [(code, other) for code in firsts for other in seconds[:1] or ["eng"]]


def _translations(name: str, texts: Mapping[str, Any], code: str, other: str) -> Translations:
    """Return the texts of two languages, from one or two files or from columns on the hub."""
    label = code if _is(other, "en") else f"{code}-{other}"
    if isinstance(texts[code], Path):
        paths = dict.fromkeys((str(texts[code]), str(texts.get(other, texts[code]))))
        return read_translations(TextSource(tuple(paths), (code, other)), label)
    if name == "tatoeba":
        texts, code, other = (
            fetch(name, *_HUB[name], f"{code}-eng", "test"),
            "sentence1",
            "sentence2",
        )
    return Translations(label, list(texts[code]), list(texts[other]))


def score(name: str, model: TextEncoder, data: Data) -> Iterator[Score]:
    """Yield all measures of a model on each language pair."""
    benchmark, sets = data
    measures = retrieval_errors if benchmark == "tatoeba" else mteb_measures
    for pairs in sets:
        for measure, value in measures(
            embed(model, pairs.first), embed(model, pairs.second)
        ).items():
            yield Score(name, benchmark, pairs.name, measure, value, len(pairs))


def retrieval_errors(first: Vectors, second: Vectors) -> dict[str, float]:
    """Score the retrieval of translations in both directions by cosine and by margin (ratio), and
    as mteb does.

    Embeddings of sentences and of their translations, in the same order, are float32 (n, D) with
    rows of length 1, or of zeros for texts without a known token, which are always misses.
    """
    by_cosine, by_margin = nearest_both_ways_of_known(
        first, second, DEFAULT_K, (Margin.ABSOLUTE, Margin.RATIO)
    )
    cosine = [_misses(rows) for rows in by_cosine]
    margin = [_misses(rows) for rows in by_margin]
    nearest = by_cosine[0]
    return {
        f"{ERROR} to English": cosine[0],
        f"{ERROR} from English": cosine[1],
        ERROR: fmean(cosine),
        "margin error to English": margin[0],
        "margin error from English": margin[1],
        "margin error": fmean(margin),
        "accuracy": 1 - _misses(nearest),
        "F1": weighted_f1(nearest),
    }


def mteb_measures(first: Vectors, second: Vectors) -> dict[str, float]:
    """Return F1 and accuracy by mteb's protocol, from the first language to the second and back.

    Sentences with the same words have the same vector. Of equally near sentences, the first is the
    nearest. mteb takes the sentence that the rounding of its matrix product prefers, so its figures
    can differ between machines.
    """
    forward, backward = nearest_both_ways_of_known(first, second, 1)[0]
    shares = {"F1": weighted_f1(forward), "F1 back": weighted_f1(backward)}
    return shares | {"accuracy": 1 - _misses(forward), "accuracy back": 1 - _misses(backward)}


def weighted_f1(found: Rows) -> float:
    """Return F1 as mteb computes it: each sentence is a class with one member, and F1 is averaged
    over classes.

    A class whose member was found has recall 1 and, if c queries in total chose it, precision 1 /
    c.
    """
    hits = found == np.arange(len(found))
    times = np.bincount(found[found >= 0], minlength=len(found))[: len(found)]
    return float(np.where(hits, 2 / (1 + times), 0.0).mean())


def _misses(found: Rows) -> float:
    return float((found != np.arange(len(found))).mean())


def tables(scores: list[Score], data: Data) -> Iterator[str]:
    """Yield a table for each model, and a table of all models with published rows."""
    benchmark, _ = data
    heading, models = _NAMES[benchmark][0], dict.fromkeys(score.model for score in scores)
    for model in models:
        own = [score for score in scores if score.model == model]
        title = f"{heading}, {model}: retrieval of translations by nearest neighbor, x 100"
        yield from report.section(
            title, [*own, *_means(own)], column=report.MEASURE, row=_pairs_label, first="pairs"
        )
    yield (
        "F1 and accuracy follow mteb: from the language to English (or to the second language), and"
        " back.\n"
    )
    if benchmark not in _SIZES:
        return
    *languages, average = next(iter(report.published()[benchmark].values()))
    measure, title = (
        (ERROR, "mean error x 100 by cosine")
        if benchmark == "tatoeba"
        else ("F1", "F1 x 100 to English")
    )
    shown = [score for score in scores if score.measure == measure and score.set in languages]
    if altered := list(
        dict.fromkeys(score.set for score in shown if score.items != _SIZES[benchmark])
    ):
        yield report.not_comparable(altered)
        return
    for model in models:
        own = [score for score in shown if score.model == model]
        shown += [replace(mean, set=average) for mean in _means(own) if len(own) == len(languages)]
    yield from report.section(f"{heading}: {title}, with published rows", shown, known=benchmark)


def _pairs_label(score: Score) -> str:
    return f"{score.set} ({score.items})"


def _means(scores: list[Score]) -> Iterator[Score]:
    """Yield the mean of each measure over all languages, if there are several."""
    for measure in dict.fromkeys(score.measure for score in scores):
        own = [score for score in scores if score.measure == measure]
        if len(own) > 1:
            mean, items = (
                fmean(score.value or 0 for score in own),
                sum(score.items for score in own),
            )
            yield replace(own[0], set=f"mean of {len(own)}", value=mean, items=items)
