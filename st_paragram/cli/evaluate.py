"""`st-paragram evaluate`: score models on your own data and on published benchmarks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.cli.options import MODEL, check_input
from st_paragram.core.formatting import counted, listed
from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.evaluation.benchmarks import (
    BENCHMARKS,
    ON_HUB,
    benchmarks_in,
    run_benchmark,
)
from st_paragram.tools.evaluation.parallel_sets import PARALLEL_SETS
from st_paragram.tools.evaluation.request import Request

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

DESCRIPTION = (
    "Score models on your own data, or on published benchmarks. The command prints Markdown tables."
    " On your data and on sts, they compare each model with the first; on benchmarks, they include"
    " the papers' figures."
)
_PARALLEL_FILES = "; ".join(test_set.files for test_set in PARALLEL_SETS.values())
EPILOG = f"""\
Your own data, plain or compressed:

- --translations: `text TAB translation`;
- --graded: a score and two sentences in three columns, in any order (the numeric column is
  detected);
- --queries, --corpus: `id TAB text`, or BEIR's JSON lines; --qrels: `query id TAB document id TAB
  grade`, or TREC.

Benchmarks: DIR has the data of some of these benchmarks. Without --benchmarks, all benchmarks with
data are scored.

- sts, hard-sts: sts2012/MSRpar.tsv, sts2017/track5.en-en.tsv, stsb/en-test.tsv (`grade TAB sentence
  TAB sentence`), or SentEval's folders, such as STS12-en-test;
- {_PARALLEL_FILES};
- bucc2018/zh-en.sample.zh, .en and .gold, or other texts in this format (`st-paragram download
  --sets bucc`);
- semantic-retrieval, answer-retrieval: folders such as quora_sr and xquad_r/es: queries.tsv,
  corpus.tsv, qrels.tsv;
- transfer/MR.tsv, ...; nli/xnli_held.es.tsv, ...
- mteb: the data of sts and tatoeba for STS12-STS16, STS17, STSBenchmark and Tatoeba; with --hub,
  any --tasks. mteb writes its result files to --results.

Examples:

  st-paragram evaluate p-sp-mini p-sp-es --translations held-out.tsv --json own.json
  st-paragram evaluate p-sp-mini --graded graded.tsv --queries queries.tsv --corpus corpus.tsv \\
    --qrels qrels.tsv
  st-paragram evaluate p-sp-es --hub --benchmarks sts tatoeba ntrex --languages es
  st-paragram evaluate p-sp-es p-sp-tr --data eval --benchmarks sts --json sts.json
  st-paragram evaluate p-sp-es --hub --benchmarks mteb --tasks STS17 STSBenchmark --results results

--hub combines the sets of each year of STS 2012-2016. It needs pip install "st_paragram[eval]";
transfer needs "st_paragram[probing]", and the row BM25 of answer-retrieval needs
"st_paragram[retrieval]".
"""

_RETRIEVAL = {"semantic-retrieval", "answer-retrieval"}
#: Options, and the benchmarks to which they apply.
_BENCHMARKS_OF = {
    "languages": {*PARALLEL_SETS, *_RETRIEVAL, "bucc", "nli", "mteb"},
    "sets": {"sts"},
    "train_gold": {"bucc"},
    "limit": _RETRIEVAL,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.cli.options import add_columns_option

    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help=f"{MODEL}; any SentenceTransformer works")
    own = parser.add_argument_group("your own data")
    _add_files_option(
        own, "--translations", "sentences and their translations, scored by retrieval"
    )
    _add_files_option(own, "--graded", "sentence pairs with similarity scores")
    own.add_argument("--queries", type=Path, metavar="FILE", help="queries for retrieval")
    own.add_argument("--corpus", type=Path, metavar="FILE", help="documents to search")
    own.add_argument(
        "--qrels", type=Path, metavar="FILE", help="relevance grades of documents for queries"
    )
    add_columns_option(
        own,
        "for tables (CSV, JSON lines, Parquet): columns of the two texts of --translations, or of"
        " the score and sentences of --graded",
    )
    add(
        "--benchmarks",
        nargs="+",
        choices=BENCHMARKS,
        default=[],
        metavar="NAME",
        help=f"benchmarks to run, from: {', '.join(BENCHMARKS)}",
    )
    add("--data", type=Path, metavar="DIR", help="folder of evaluation data, as described below")
    add(
        "--hub",
        action="store_true",
        help=f"load {listed(ON_HUB)} from the hub if missing from DIR",
    )
    texts = [test_set.name for test_set in PARALLEL_SETS.values() if test_set.is_one_text]
    add(
        "--languages",
        nargs="+",
        default=[],
        metavar="CODE",
        help=f"languages to score, such as es or spa, or es-de in {listed(texts)} (default: all in"
        " DIR)",
    )
    add(
        "--sets",
        nargs="+",
        default=[],
        metavar="NAME",
        help="STS years and sets to score, such as 2012, stsb or 2017/en-en (default: all)",
    )
    add(
        "--tasks",
        nargs="+",
        default=[],
        metavar="NAME",
        help="tasks of mteb, such as STS17 or Tatoeba, for the benchmark mteb",
    )
    add(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder of mteb's result files; finished tasks are not repeated (default: results)",
    )
    add(
        "--train-gold",
        metavar="FILE.gold",
        help="gold file, next to its two texts, on which to choose the BUCC threshold (default: the"
        " scored data)",
    )
    add(
        "--untrained",
        action="store_true",
        help="also score random embeddings with the first model's vocabulary",
    )
    add(
        "--limit",
        type=int,
        metavar="N",
        help="first queries of each retrieval set to score (default: all)",
    )
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write the scores to this file, as a JSON list",
    )


def _add_files_option(parser: argparse._ArgumentGroup, option: str, description: str) -> None:
    parser.add_argument(
        option,
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help=description,
    )


def run(arguments: argparse.Namespace) -> int:
    """Score the models and print the tables; return the exit status."""
    _check(arguments)
    from st_paragram.core.model_directory.find import find
    from st_paragram.core.outputs import output_files
    from st_paragram.tools.evaluation.scores import Score, write_scores

    benchmarks = _benchmarks(arguments)
    for option, users in _BENCHMARKS_OF.items():
        if getattr(arguments, option) and not users & {*benchmarks}:
            name = option.replace("_", "-")
            raise SettingsError(f"--{name} applies only to {listed(sorted(users))}; leave it out")
    for name in arguments.models:
        find(name)
    retrieval: tuple[Path, ...] = ()
    if arguments.queries:
        retrieval = (arguments.queries, arguments.corpus, arguments.qrels)
    request = Request(
        models=arguments.models,
        data=arguments.data,
        hub=arguments.hub,
        languages=arguments.languages,
        random_model=_random_model if arguments.untrained else None,
        limit=arguments.limit,
        sets=arguments.sets,
        train_gold=arguments.train_gold,
        tasks=arguments.tasks,
        results=arguments.results,
        translations=arguments.translations,
        graded=arguments.graded,
        retrieval=retrieval,
        columns=arguments.columns or (),
    )
    scores: list[Score] = []
    with output_files(arguments.json, overwrite=True):
        for benchmark in benchmarks:
            benchmark_scores, parts = run_benchmark(benchmark, request)
            print(*parts, "", sep="\n", flush=True)
            scores += benchmark_scores
            if arguments.json:
                # after each benchmark, so that an interruption loses little
                write_scores(scores, arguments.json)
    return 0


def _benchmarks(arguments: argparse.Namespace) -> list[str]:
    """Return the distinct names of the benchmarks to run; "own" stands for the user's files."""
    benchmarks = list(arguments.benchmarks)
    if not benchmarks:
        if arguments.hub:
            benchmarks += ON_HUB
        if arguments.data:
            benchmarks += benchmarks_in(arguments.data)
    if arguments.data and not benchmarks:
        raise EvaluationError(
            f"{arguments.data}: no benchmark data; `st-paragram evaluate --help` describes the"
            " files of each benchmark"
        )
    if arguments.translations or arguments.graded or arguments.queries:
        benchmarks.insert(0, "own")
    return list(dict.fromkeys(benchmarks))


def _random_model(name: str) -> TextEncoder:
    from st_paragram.learning.models.untrained import random_model

    return random_model(name)


def _check(arguments: argparse.Namespace) -> None:
    """Check the arguments before anything large is imported."""
    from st_paragram.core.files import file_for_folder
    from st_paragram.core.text.parallel import source_of

    retrieval = (arguments.queries, arguments.corpus, arguments.qrels)
    if any(retrieval) and not all(retrieval):
        raise SettingsError("--queries, --corpus and --qrels belong together; give all three")
    translations = [source_of(str(path)).paths[0] for path in arguments.translations]
    texts = [*translations, *arguments.graded]
    files = [*texts, *(path for path in retrieval if path)]
    for path in files:
        check_input(str(path))
    if not (arguments.hub or arguments.data or (files and not arguments.benchmarks)):
        raise SettingsError(
            "no data; give --data DIR, --hub, or your own files, such as --translations FILE"
        )
    if arguments.data is not None and not arguments.data.is_dir():
        problem = file_for_folder(arguments.data) or f"{arguments.data}: no such folder"
        raise EvaluationError(f"{problem}; give a folder of evaluation data")
    _check_columns(arguments, texts)
    is_mteb = "mteb" in arguments.benchmarks
    if is_mteb != bool(arguments.tasks):
        raise SettingsError("--tasks and the benchmark mteb belong together; give both")
    if is_mteb and arguments.untrained:
        raise SettingsError("mteb scores no random embeddings; leave out --untrained")
    if arguments.json:
        _check_json(arguments.json)


def _check_columns(arguments: argparse.Namespace, texts: list[Path]) -> None:
    from st_paragram.core.text.tables import check_plain

    if arguments.columns is None:
        for path in texts:
            check_plain(str(path))
        return
    if not texts or (arguments.translations and arguments.graded):
        raise SettingsError(
            "--columns needs either --translations or --graded; score the two in separate runs"
        )
    expected = 2 if arguments.translations else 3
    if len(arguments.columns) != expected:
        raise SettingsError(
            f"{counted(len(arguments.columns), 'column')} given, {expected} needed; name the two"
            " texts of --translations, or score and sentences of --graded"
        )


def _check_json(path: Path) -> None:
    """Refuse to replace a file that is not a list of scores."""
    from st_paragram.core.files import read_json
    from st_paragram.core.outputs import check_output

    check_output(path, overwrite=True)
    if not path.exists():
        return
    message = f"{path} exists and is not a file of scores; choose another name"
    try:
        rows = read_json(path)
    except ValueError as error:
        raise EvaluationError(message) from error
    if not isinstance(rows, list):
        raise EvaluationError(message)
    for row in rows:
        if not isinstance(row, dict) or "benchmark" not in row:
            raise EvaluationError(message)
