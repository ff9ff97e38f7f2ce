"""Retrieval of translations by nearest neighbor: Tatoeba, NTREX-128 and FLORES-200.

Two protocols. The papers' error rate (Wieting et al., EMNLP 2022, table of Tatoeba; Artetxe and
Schwenk, TACL 2019): sentences whose nearest neighbor is not their translation, in both directions.
mteb's F1 and accuracy. `parallel_sets` has the test sets; all are read from a folder or from the
Hugging Face hub.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from st_paragram.core.arrays import Integers
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.languages import LANGUAGES, MODEL_LANGUAGES
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.files import (
    Translations,
    inner_folder,
    matching_files,
    read_translations,
)
from st_paragram.tools.evaluation.known_sets import are_published
from st_paragram.tools.evaluation.parallel_sets import (
    PARALLEL_SETS,
    ParallelSet,
    is_known_language,
    is_language,
)
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.scores import Score, embed, nearest_both_ways_of_known
from st_paragram.tools.neighbors.results import Vectors

ENGLISH = "eng"
ERROR = "error"  # of nearest neighbors by cosine, mean of both directions, as in the papers


@dataclass(frozen=True)
class TranslationData:
    """The language pairs of a parallel test set."""

    test_set: ParallelSet
    pairs: list[Translations]
    from_hub: bool = False


def find(data: Path, benchmark: str) -> dict[str, Path]:
    """Return language -> file in the subfolder with the benchmark's name, or in the data folder."""
    return matching_files(inner_folder(data, benchmark), PARALLEL_SETS[benchmark].file_name)


def read(request: Request) -> TranslationData:
    """Read the language pairs of a test set from a folder or from the hub.

    Languages are ISO 639-3 codes, two-letter codes of the models' languages, or two languages of a
    text that is parallel by line ("es-de"). Single languages are paired with English. By default,
    all languages of the folder are read, or the models' languages of the hub.
    """
    test_set = PARALLEL_SETS[request.benchmark]
    files = find(request.data, test_set.name) if request.data else {}
    if request.hub and not files:
        read_pairs = _read_hub_text if test_set.is_one_text else _read_hub_pairs
        pairs = read_pairs(test_set, request.languages)
        return TranslationData(test_set, pairs, from_hub=True)
    request.check_found(files, f"files are named like {test_set.example}")
    pairs = []
    codes = list(files)
    for first, second in _language_pairs(test_set, request.languages, codes, default=codes):
        paths = [str(files[first])]
        if test_set.is_one_text:
            paths.append(str(files[second]))
        source = TextSource(tuple(paths), (first, second))
        pairs.append(read_translations(source, _label(first, second)))
    return TranslationData(test_set, pairs)


def _read_hub_pairs(test_set: ParallelSet, languages: Sequence[str]) -> list[Translations]:
    """Load a data set whose subsets are pairs with English."""
    default = [LANGUAGES[code].test_codes[0] for code in MODEL_LANGUAGES if code != "en"]
    default.append(ENGLISH)
    codes = default + [code for code in languages if code not in MODEL_LANGUAGES]
    pairs = []
    for code, _ in _language_pairs(test_set, languages, codes, default=default):
        rows = test_set.hub.load(f"{code}-{ENGLISH}")
        pairs.append(Translations(code, list(rows["sentence1"]), list(rows["sentence2"])))
    return pairs


def _read_hub_text(test_set: ParallelSet, languages: Sequence[str]) -> list[Translations]:
    """Load a data set with a column per language."""
    texts = test_set.hub.load()
    codes = texts.column_names
    default = [code for code in codes if is_known_language(code)]
    pairs = []
    for first, second in _language_pairs(test_set, languages, codes, default=default):
        label = _label(first, second)
        pairs.append(Translations(label, list(texts[first]), list(texts[second])))
    return pairs


def _language_pairs(
    test_set: ParallelSet, languages: Sequence[str], codes: Sequence[str], default: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the pairs of codes for languages, or for the default languages if none is given."""
    foreign = _without_english(languages) or _without_english(default)
    pairs: dict[tuple[str, str], None] = {}
    for language in foreign:
        pairs.update(dict.fromkeys(_pairs_of_language(test_set, language, codes)))
    return list(pairs)


def _without_english(languages: Iterable[str]) -> list[str]:
    return [language for language in languages if not is_language(language, "en")]


def _pairs_of_language(
    test_set: ParallelSet, language: str, codes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the pairs of codes for "es" (with English), or for "es-de" in a parallel text."""
    firsts = _codes_of(language, codes)
    seconds = [ENGLISH]
    if test_set.is_one_text:
        second = "en"
        if "-" in language and not firsts:
            first, second = language.split("-", 1)
            firsts = _codes_of(first, codes)
        seconds = sorted(_codes_of(second, codes))
    if not firsts or not seconds:
        raise EvaluationError(
            f"{test_set.name}: no test set for {language}; choose from these {len(codes)}:"
            f" {' '.join(codes)}"
        )
    return [(code, seconds[0]) for code in firsts]


def _codes_of(language: str, codes: Iterable[str]) -> list[str]:
    return [code for code in codes if is_language(code, language)]


def _label(first: str, second: str) -> str:
    """Return the name of a pair of languages, without English."""
    return first if is_language(second, "en") else f"{first}-{second}"


def score(name: str, model: TextEncoder, data: TranslationData) -> Iterator[Score]:
    """Yield all measures of a model on each language pair."""
    measures = mteb_measures if data.test_set.is_one_text else retrieval_errors
    for pairs in data.pairs:
        figures = measures(embed(model, pairs.first), embed(model, pairs.second))
        for measure, value in figures.items():
            yield Score(
                model=name,
                benchmark=data.test_set.name,
                set=pairs.name,
                measure=measure,
                value=value,
                items=len(pairs),
            )


def retrieval_errors(first: Vectors, second: Vectors) -> dict[str, float]:
    """Return the papers' error rates of retrieval, by cosine and by margin, and mteb's measures.

    The margin is the ratio of Artetxe and Schwenk, ACL 2019. Embeddings of sentences and of their
    translations, in the same order, are float32 (n, D) with rows of length 1, or of zeros for texts
    without a known token, which are always misses.
    """
    to_english, from_english = nearest_both_ways_of_known(first, second, DEFAULT_K)
    error_to = _error(to_english)
    error_from = _error(from_english)
    by_margin = nearest_both_ways_of_known(first, second, DEFAULT_K, margin=Margin.RATIO)
    margin_error_to = _error(by_margin[0])
    margin_error_from = _error(by_margin[1])
    return {
        f"{ERROR} to English": error_to,
        f"{ERROR} from English": error_from,
        ERROR: (error_to + error_from) / 2,
        "margin error to English": margin_error_to,
        "margin error from English": margin_error_from,
        "margin error": (margin_error_to + margin_error_from) / 2,
        "accuracy": 1 - error_to,
        "F1": weighted_f1(to_english),
    }


def mteb_measures(first: Vectors, second: Vectors) -> dict[str, float]:
    """Return F1 and accuracy by mteb's protocol, from the first language to the second and back.

    Sentences with the same words have the same vector. Of equally near sentences, the first is the
    nearest. mteb takes the sentence that the rounding of its matrix product prefers, so its figures
    can differ between machines.
    """
    forward, backward = nearest_both_ways_of_known(first, second, 1)
    return {
        "F1": weighted_f1(forward),
        "F1 back": weighted_f1(backward),
        "accuracy": 1 - _error(forward),
        "accuracy back": 1 - _error(backward),
    }


def weighted_f1(nearest: Integers) -> float:
    """Return F1 as mteb computes it: each sentence is a class with one member, and F1 is averaged.

    If the nearest neighbor of a sentence is right, its class has recall 1 and, if c sentences in
    total have this neighbor, precision 1 / c.
    """
    count = len(nearest)
    choices = np.bincount(nearest[nearest >= 0], minlength=count)[:count]
    is_right = nearest == np.arange(count)
    return float(np.where(is_right, 2 / (1 + choices), 0.0).mean())


def _error(nearest: Integers) -> float:
    """Return the share of sentences whose nearest neighbor is not their translation."""
    return float((nearest != np.arange(len(nearest))).mean())


def tables(scores: list[Score], data: TranslationData) -> Iterator[str]:
    """Yield a table for each model, and a table of all models with published rows."""
    title = data.test_set.title
    for model, of_model in report.grouped(scores, report.MODEL).items():
        means = []
        for of_measure in report.grouped(of_model, report.MEASURE).values():
            if len(of_measure) > 1:
                means.append(_mean(of_measure))
        yield from report.section(
            f"{title}, {model}: retrieval of translations by nearest neighbor, x 100",
            of_model + means,
            column=report.MEASURE,
            row=_pairs_label,
            corner="pairs",
        )
    yield (
        "F1 and accuracy follow mteb: from the language to English (or to the second language), and"
        " back.\n"
    )
    if data.test_set.sentences:
        yield from _published_table(scores, data)


def _published_table(scores: list[Score], data: TranslationData) -> Iterator[str]:
    """Yield a table of all models with published rows, or why there is none."""
    test_set = data.test_set
    measure, title = ERROR, "mean error x 100 by cosine"
    if test_set.is_one_text:
        measure, title = "F1", "F1 x 100 to English"
    *languages, average = report.published_columns(test_set.name)
    shown = [score for score in scores if score.measure == measure and score.set in languages]
    altered = []
    for pairs in data.pairs:
        if pairs.name in languages and not _is_published(pairs, data):
            altered.append(pairs.name)
    if altered:
        yield report.not_comparable(altered)
        return
    for of_model in report.grouped(shown, report.MODEL).values():
        if len(of_model) == len(languages):
            shown.append(replace(_mean(of_model), set=average))
    yield from report.section(
        f"{test_set.title}: {title}, with published rows", shown, published_table=test_set.name
    )


def _is_published(pairs: Translations, data: TranslationData) -> bool:
    """Whether pairs are the published ones; those of the hub have a fixed revision."""
    if data.from_hub:
        return len(pairs) == data.test_set.sentences
    return are_published(data.test_set.name, pairs)


def _pairs_label(score: Score) -> str:
    return f"{score.set} ({score.items})"


def _mean(scores: list[Score]) -> Score:
    """Return the mean of a measure over languages."""
    mean = fmean(score.value or 0 for score in scores)
    items = sum(score.items for score in scores)
    return replace(scores[0], set=f"mean of {len(scores)}", value=mean, items=items)
