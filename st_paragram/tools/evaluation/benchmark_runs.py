"""Score a list of models on a benchmark: typed results, with one model in memory at a time.

A model is whatever `load_model` reads; all are looked for before the first one is scored. `untrained` adds random
embeddings over the first model's vocabulary, behind the others: what the architecture knows without training.
"""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

from sentence_transformers import SentenceTransformer

from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.margin import DEFAULT_K
from st_paragram.tools.evaluation.bootstrap import RESAMPLES
from st_paragram.tools.evaluation.bucc_scores import BuccTask, score_bucc
from st_paragram.tools.evaluation.models import find_models, load_model, random_model
from st_paragram.tools.evaluation.mteb.data import read_local_data
from st_paragram.tools.evaluation.mteb.tasks import evaluate, make_tasks
from st_paragram.tools.evaluation.results import BuccRun, HardStsRun, MtebResult, MtebRun, StsRun, TatoebaRun
from st_paragram.tools.evaluation.sts.hard import NOTES, different_pairs, score_hard_sts, split_rows
from st_paragram.tools.evaluation.sts.scores import Bootstrap, score_sts, sts_result
from st_paragram.tools.evaluation.sts.sts_files import StsData
from st_paragram.tools.evaluation.tatoeba import score_tatoeba
from st_paragram.tools.evaluation.translations import Translations

UNTRAINED = "untrained"

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")


def run_sts(
    names: Sequence[str],
    data: StsData,
    untrained: bool = False,
    compare: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> StsRun:
    """Score models on STS 2012-2017 and the STS Benchmark.

    Args:
        names: of the models.
        data: what there is of the benchmarks.
        untrained: add random embeddings.
        compare: compare every model with the first, by paired bootstrap.
        resamples: of the bootstrap; 0 for no intervals.
        seed: of the bootstrap.

    Raises:
        SettingsError: a number is negative, or there is nothing to compare, or no bootstrap to do it with.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    if resamples < 0 or seed < 0:
        raise SettingsError("--bootstrap and --seed are numbers from 0 on")
    if compare and not (resamples and len(set(names)) + untrained > 1):
        raise SettingsError("--compare needs two models or --untrained, and --bootstrap above 0")
    scores = score_each(names, lambda model: score_sts(model, data), untrained)
    bootstrap = Bootstrap(scores, resamples, seed) if resamples else None
    first = next(iter(scores)) if compare else None
    results = {name: sts_result(of, name, bootstrap, first if name != first else None) for name, of in scores.items()}
    skipped = {key: pairs.skipped for key, pairs in data.sets.items() if pairs.skipped}
    return StsRun(results, data.notes, skipped, resamples, seed)


def run_hard_sts(names: Sequence[str], data: StsData, untrained: bool = False) -> HardStsRun:
    """Score models on the splits of Hard STS; arguments and errors as of `run_sts`.

    Raises:
        EvaluationError: there are no pairs of STS 2012-2016, or a model gave NaN or infinite numbers.
    """
    pairs = different_pairs(data.everything().values())
    rows = split_rows(pairs)
    return HardStsRun(
        score_each(names, lambda model: score_hard_sts(model, pairs, rows), untrained), (*NOTES, *data.notes)
    )


def run_tatoeba(
    names: Sequence[str], sets: Sequence[Translations], k: int = DEFAULT_K, untrained: bool = False
) -> TatoebaRun:
    """Score models on the retrieval of translations.

    Args:
        names: of the models.
        sets: the test sets.
        k: neighbours that make a margin's background.
        untrained: add random embeddings.

    Raises:
        ModelDirectoryError: a model is not there or cannot be read.
    """
    return TatoebaRun(score_each(names, lambda model: score_tatoeba(model, sets, k), untrained), k)


def run_bucc(names: Sequence[str], task: BuccTask, untrained: bool = False) -> BuccRun:
    """Score models on finding translations in comparable texts; errors as of `run_tatoeba`."""
    results = score_each(names, lambda model: score_bucc(model, task), untrained)
    return BuccRun(results, task.headings(), task.k, task.candidates.value)


def run_mteb(
    names: Sequence[str],
    tasks: Sequence[str],
    data: str | Path | None = None,
    languages: Sequence[str] = (),
    output: str | Path | None = None,
    overwrite: bool = False,
) -> MtebRun:
    """Let mteb score models on its tasks.

    Args:
        names: of the models.
        tasks: mteb's names.
        data: folder of local files; None to have mteb fetch its own data.
        languages: see `make_tasks`.
        output: folder for mteb's own results files.
        overwrite: score again what is in `output`.

    Raises:
        EvaluationError, TextError, MissingExtraError: as `make_tasks` and `evaluate`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    results: dict[str, MtebResult] = {}
    read = cache(read_local_data)
    find_models(names)
    with _quiet():
        for name in dict.fromkeys(names):
            made = make_tasks(tasks, data, languages, read)
            revisions = {task.metadata.name: task.metadata.revision for task in made}
            results[name] = evaluate(name, made, output, overwrite)
            gc.collect()
    notes = dict.fromkeys(note for task in revisions for note in read(task, data).notes) if data else ()
    return MtebRun(results, revisions, tuple(notes))


def score_each(
    names: Sequence[str], score: Callable[[SentenceTransformer], _Result], untrained: bool
) -> dict[str, _Result]:
    """Score one model after the other; at most one is in memory.

    Args:
        names: of the models; all are looked for first.
        score: of one model.
        untrained: add random embeddings over the first model's vocabulary, as the last of the results.

    Raises:
        ModelDirectoryError: a model is not there or cannot be read.
    """
    find_models(names)
    random: dict[str, _Result] = {}
    if untrained:  # first, since not every model has a vocabulary to take
        random[UNTRAINED] = score(random_model(load_model(names[0])))
        gc.collect()  # pipelines refer to themselves
    found: dict[str, _Result] = {}
    for name in dict.fromkeys(names):
        logger.info(f"{name}: scoring")
        found[name] = score(load_model(name))
        gc.collect()
    return found | random


@contextmanager
def _quiet() -> Iterator[None]:
    """Without mteb's running commentary, and its advice to take other tasks than the papers'."""
    logging.getLogger("mteb").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is superseded by ", UserWarning)
        yield
