"""`st-paragram evaluate`: score models on your own data and on published benchmarks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from st_paragram.cli.options import MODEL, check_input
from st_paragram.core.formatting import counted
from st_paragram.errors import EvaluationError, SettingsError

DESCRIPTION = (
    "Score models on your own data, or on published benchmarks. The command prints Markdown tables."
    " On your data and on sts, they compare each model with the first; on benchmarks, they include"
    " the papers' figures."
)
EPILOG = """\
Your own data, plain or compressed:

- --translations: `text TAB translation`;
- --graded: a score and two sentences in three columns, in any order (the numeric column is detected);
- --queries, --corpus: `id TAB text`, or BEIR's JSON lines; --qrels: `query id TAB document id TAB grade`, or TREC.

Benchmarks: DIR has the data of some of these benchmarks. Without --benchmarks, all benchmarks with data are scored.

- sts, hard-sts: sts2012/MSRpar.tsv, sts2017/track5.en-en.tsv, stsb/en-test.tsv (`grade TAB sentence TAB sentence`), or
SentEval's folders, such as STS12-en-test;
- tatoeba/spa-eng.tsv; ntrex/newstest2019-src.eng.txt, newstest2019-ref.spa.txt; flores/eng_Latn.devtest, ...;
- bucc2018/zh-en.sample.zh, .en and .gold, or other texts in this format (`st-paragram download --sets bucc`);
- semantic-retrieval, answer-retrieval: folders such as quora_sr and xquad_r/es: queries.tsv, corpus.tsv, qrels.tsv;
- transfer/MR.tsv, ...; nli/xnli_held.es.tsv, ...

Examples:

  st-paragram evaluate p-sp-mini p-sp-es --translations held-out.tsv --json own.json
  st-paragram evaluate p-sp-mini --graded graded.tsv --queries queries.tsv --corpus corpus.tsv --qrels qrels.tsv
  st-paragram evaluate p-sp-es --hub --benchmarks sts tatoeba ntrex --languages es
  st-paragram evaluate p-sp-es p-sp-tr --data eval --benchmarks sts --json sts.json

--hub combines the sets of each year of STS 2012-2016. It needs pip install "st_paragram[eval]"; transfer needs
"st_paragram[probing]", and the row BM25 of answer-retrieval needs "st_paragram[retrieval]".
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.cli.options import add_columns_option
    from st_paragram.tools.evaluation.benchmarks import BENCHMARKS

    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help=f"{MODEL}; any SentenceTransformer works")
    group = parser.add_argument_group("your own data")
    own = group.add_argument
    several: dict[str, Any] = {
        "type": Path,
        "nargs": "+",
        "action": "extend",
        "default": [],
        "metavar": "FILE",
    }
    own("--translations", **several, help="sentences and their translations, scored by retrieval")
    own("--graded", **several, help="sentence pairs with similarity scores")
    own("--queries", type=Path, metavar="FILE", help="queries for retrieval")
    own("--corpus", type=Path, metavar="FILE", help="documents to search")
    own("--qrels", type=Path, metavar="FILE", help="relevance grades of documents for queries")
    texts = "columns of the two texts of --translations, or of the score and sentences of --graded"
    add_columns_option(group, f"for tables (CSV, JSON lines, Parquet): {texts}")

    names = f"benchmarks to run, from: {', '.join(BENCHMARKS)}"
    add("--benchmarks", nargs="+", choices=BENCHMARKS, default=[], metavar="NAME", help=names)
    add("--data", type=Path, metavar="DIR", help="folder of evaluation data, as described below")
    add(
        "--hub",
        action="store_true",
        help="load STS, Tatoeba, NTREX and FLORES from the hub if missing from DIR",
    )
    languages = (
        "languages to score, such as es or spa, or es-de in ntrex and flores (default: all in DIR)"
    )
    add("--languages", nargs="+", default=[], metavar="CODE", help=languages)
    sets = "STS years and sets to score, such as 2012, stsb or 2017/en-en (default: all)"
    add("--sets", nargs="+", default=[], metavar="NAME", help=sets)
    gold = (
        "gold file, next to its two texts, on which to choose the BUCC threshold (default: the"
        " scored data)"
    )
    add("--train-gold", metavar="FILE.gold", help=gold)
    add(
        "--untrained",
        action="store_true",
        help="also score random embeddings with the first model's vocabulary",
    )
    add(
        "--limit",
        type=int,
        metavar="N",
        help="first queries of each semantic-retrieval set to score (default: all)",
    )
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write the scores to this file, as a JSON list",
    )


def run(arguments: argparse.Namespace) -> int:
    """Score the models and print the tables; return the exit status."""
    _check(arguments)
    from st_paragram.core.model_directory.find import find
    from st_paragram.core.outputs import output_files
    from st_paragram.tools.evaluation.benchmarks import (
        ON_HUB,
        Request,
        benchmarks_in,
        run_benchmark,
    )
    from st_paragram.tools.evaluation.scores import Score, write_scores

    own = ["own"] if arguments.translations or arguments.graded or arguments.queries else []
    in_data = benchmarks_in(arguments.data) if arguments.data else []
    benchmarks = arguments.benchmarks or [*(ON_HUB if arguments.hub else ()), *in_data]
    if arguments.data and not benchmarks:
        seen = f"{arguments.data}: no benchmark data"
        raise EvaluationError(
            f"{seen}; `st-paragram evaluate --help` describes the files of each benchmark"
        )
    for name in arguments.models:
        find(name)
    names = (
        "models",
        "data",
        "hub",
        "languages",
        "untrained",
        "limit",
        "sets",
        "train_gold",
        "translations",
        "graded",
    )
    options: dict[str, Any] = {name: getattr(arguments, name) for name in (*names, "columns")}
    retrieval = (arguments.queries, arguments.corpus, arguments.qrels) if arguments.queries else ()
    request, scores = Request(**options, retrieval=retrieval), list[Score]()
    with output_files(arguments.json, overwrite=True):
        for benchmark in dict.fromkeys([*own, *benchmarks]):
            new_scores, parts = run_benchmark(benchmark, request)
            print(*parts, "", sep="\n", flush=True)
            scores += new_scores
            if arguments.json:
                # after each benchmark, so that an interruption loses little
                write_scores(scores, arguments.json)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Check the arguments before anything large is imported."""
    from st_paragram.core.outputs import check_output
    from st_paragram.core.text.tables import check_plain

    data, texts = arguments.data, [*arguments.translations, *arguments.graded]
    retrieval = {f"--{name}": getattr(arguments, name) for name in ("queries", "corpus", "qrels")}
    missing = [option for option, path in retrieval.items() if path is None]
    files = [*texts, *filter(None, retrieval.values())]
    if 0 < len(missing) < len(retrieval):
        raise SettingsError(
            f"--queries, --corpus and --qrels belong together; also give {' and '.join(missing)}"
        )
    for path in files:
        check_input(str(path))
    if not (arguments.hub or data or (files and not arguments.benchmarks)):
        raise SettingsError(
            "no data; give --data DIR, --hub, or your own files, such as --translations FILE"
        )
    if data is not None and not data.is_dir():
        raise EvaluationError(f"{data}: no such folder; give a folder of evaluation data")
    if arguments.columns is None:
        for path in texts:
            check_plain(str(path))
        arguments.columns = ()
    elif not texts or (arguments.translations and arguments.graded):
        raise SettingsError(
            "--columns needs either --translations or --graded; score the two in separate runs"
        )
    elif len(arguments.columns) != (expected := 2 if arguments.translations else 3):
        seen = f"{counted(len(arguments.columns), 'column')} given, {expected} needed"
        raise SettingsError(
            f"{seen}; name the two texts of --translations, or score and sentences of --graded"
        )
    if arguments.json:
        check_output(arguments.json, overwrite=True)
        if arguments.json.exists() and not _is_scores(arguments.json):
            raise EvaluationError(
                f"{arguments.json} exists and is not a file of scores; choose another name"
            )


def _is_scores(path: Path) -> bool:
    """Whether a file is a list of scores, which an evaluation may replace."""
    from st_paragram.core.files import read_json

    try:
        rows = read_json(path)
    except ValueError:
        return False
    return isinstance(rows, list) and all(
        isinstance(row, dict) and "benchmark" in row for row in rows
    )
