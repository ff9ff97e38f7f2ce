"""`st-paragram evaluate`: score models on the user's own data, and on published benchmarks."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from st_paragram.core.words import counted
from st_paragram.errors import EvaluationError, MissingExtraError, ModelDirectoryError, SettingsError

DESCRIPTION = (
    "Score models on your own data, or on published benchmarks. The command prints Markdown tables. On "
    "your data, they compare each model with the first; on benchmarks, they include the papers' figures."
)
EPILOG = """\
Your own data, plain or compressed:

- --pairs: `text TAB translation`; --distractors: one sentence per line;
- --graded: a score and two sentences in three columns, in any order (the column of numbers is found);
- --queries, --corpus: `id TAB text`, or BEIR's JSON lines; --qrels: `query id TAB document id TAB grade`, or TREC's.

  st-paragram evaluate p-sp-mini p-sp-es --pairs held-out.tsv --json own.json
  st-paragram evaluate p-sp-mini --graded graded.tsv --queries queries.tsv --corpus corpus.tsv --qrels qrels.tsv

Benchmarks: DIR is a folder with the data of some of these. Without --benchmarks, all benchmarks with data are scored.

- sts, hard-sts: sts2012/MSRpar.tsv, ..., sts2017/track5.en-en.tsv and stsb/en-test.tsv, with rows
`grade TAB sentence TAB sentence`; or the tasks' own releases;
- tatoeba: tatoeba/spa-eng.tsv, ...;
- bucc: bucc2018/zh-en.sample.zh, .en and .gold;
- semantic-retrieval, answer-retrieval: folders such as quora_sr, reqa_squad_dev and xquad_r/es, which have queries.tsv,
corpus.tsv and qrels.tsv;
- transfer: transfer/MR.tsv, ...;
- nli: nli/xnli_held.es.tsv and the like.

Examples:

  st-paragram evaluate p-sp-es --hub --benchmarks sts hard-sts
  st-paragram evaluate p-sp-es --data eval --fetch --benchmarks tatoeba
  st-paragram evaluate p-sp-es p-sp-tr --data eval --benchmarks sts --compare --json sts.json
  st-paragram evaluate p-sp-es --data eval --benchmarks tatoeba mteb --languages es
  st-paragram evaluate p-sp-zh --data eval --benchmarks bucc --pair zh-en
  st-paragram evaluate muse-cnn --data eval --benchmarks semantic-retrieval answer-retrieval transfer nli

--hub reads STS from the Hugging Face hub, where the sets of each year from 2012 to 2016 are put together. --fetch
downloads seven languages of Tatoeba and shows their addresses and license. For BUCC, fetch the archives with
`st-paragram download --sets bucc` and unpack them into DIR/bucc2018.

The benchmark transfer needs pip install "st_paragram[probing]", the row BM25 of answer-retrieval
"st_paragram[retrieval]", and mteb and --hub need "st_paragram[eval]".
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.tools.evaluation.benchmarks import BENCHMARKS
    from st_paragram.tools.options.columns import add_columns_option

    add = parser.add_argument
    models = "model directory, name or hub id; any SentenceTransformer directory works"
    add("models", nargs="+", metavar="MODEL", help=models)
    group = parser.add_argument_group("your own data")
    own = group.add_argument
    several: dict[str, Any] = {"type": Path, "nargs": "+", "action": "extend", "default": [], "metavar": "FILE"}
    own("--pairs", dest="own_pairs", **several, help="pairs of translations, scored by retrieval and by mining")
    own(
        "--distractors",
        type=Path,
        nargs=2,
        default=[],
        metavar=("FIRST", "SECOND"),
        help="sentences without a partner, in the first and in the second language, to mine the pairs among "
        "(default: a third of the pairs lose their first side, and a third their second)",
    )
    own("--graded", **several, help="sentence pairs with similarity scores")
    own("--queries", type=Path, metavar="FILE", help="queries for retrieval")
    own("--corpus", type=Path, metavar="FILE", help="the documents")
    own("--qrels", type=Path, metavar="FILE", help="relevance grades of documents for queries")
    texts = "columns of the two texts of --pairs, or of the score and sentences of --graded"
    add_columns_option(group, f"for tables (CSV, JSON lines, Parquet): {texts}")

    names = f"benchmarks to run, from: {', '.join(BENCHMARKS)}"
    add("--benchmarks", nargs="+", choices=BENCHMARKS, metavar="NAME", help=names)
    add("--data", type=Path, metavar="DIR", help="folder of evaluation data, as described below")
    add("--fetch", action="store_true", help="first download missing languages of Tatoeba into DIR")
    add("--hub", action="store_true", help="take mteb's data, and STS sets missing from DIR, from the Hugging Face hub")

    def add_names(option: str, metavar: str, about: str, **more: Any) -> None:  # noqa: ANN401
        add(option, nargs="+", default=[], metavar=metavar, help=about, **more)

    add_names("--languages", "CODE", "languages to score, such as es or spa (default: all in DIR)")
    add_names("--pair", "zh-en", "BUCC language pairs to score (default: all in DIR)", dest="pairs")
    add_names("--sets", "NAME", "STS years and sets to score, such as 2012, stsb or 2017/en-en (default: all)")
    gold = "gold file, next to its two texts, on which to choose the BUCC threshold (default: the scored data)"
    add("--train-gold", metavar="FILE.gold", help=gold)
    add_names("--tasks", "NAME", "mteb tasks to score (default: all in DIR)")
    add("--mteb-results", type=Path, metavar="DIR", help="folder for mteb's results files, which are reused")
    add("--untrained", action="store_true", help="also score random embeddings over the vocabulary of the first model")
    limit = "first N queries of each semantic-retrieval set, for a quick look (default: all)"
    add("--limit", type=int, metavar="N", help=limit)
    add("--compare", action="store_true", help="on STS, compare every model with the first one by a paired bootstrap")
    add("--json", type=Path, metavar="FILE", help="also write the results to this file, one record per benchmark")


def run(arguments: argparse.Namespace) -> int:
    """Score the models and print the tables; returns the exit status."""
    _check(arguments)
    benchmarks = []
    if _on_benchmarks(arguments):
        os.environ.setdefault("TQDM_DISABLE", "1")  # read when libraries are imported; mteb draws hundreds of bars
        benchmarks = _benchmarks(arguments)

    from st_paragram.core.files import output_files
    from st_paragram.tools.evaluation.models import find_models

    find_models(arguments.models)
    with output_files(arguments.json, overwrite=True):
        _score(arguments, benchmarks)
    return 0


def _on_benchmarks(arguments: argparse.Namespace) -> bool:
    """Whether published benchmarks are asked for, and not the user's own data alone."""
    return bool(arguments.data or arguments.hub or arguments.fetch or arguments.benchmarks)


def _score(arguments: argparse.Namespace, benchmarks: list[str]) -> None:
    """Score the models, and print and write the results on the user's data and on each benchmark."""
    from st_paragram.tools.evaluation.base import Request
    from st_paragram.tools.evaluation.benchmarks import own_files, report, run_benchmark
    from st_paragram.tools.evaluation.record import Record, new_record, write_records

    names = ["hub", "languages", "pairs", "untrained", "compare", "limit", "sets", "train_gold", "tasks"]
    names += ["mteb_results", "own_pairs", "distractors", "graded", "columns"]
    retrieval = (arguments.queries, arguments.corpus, arguments.qrels) if arguments.queries else ()
    options = {name: getattr(arguments, name) for name in names}
    request = Request(arguments.models, arguments.data, **options, retrieval=retrieval)
    records: list[Record[Any]] = []
    for benchmark in [*own_files(request), *benchmarks]:
        found = run_benchmark(benchmark, request)
        for part in report(found):
            print(part)
        print(flush=True)
        if arguments.json:
            records.append(new_record(found))
            write_records(records, arguments.json)  # after each, so that a stop leaves what was finished


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what can be refused before anything large is imported."""
    from st_paragram.core.files import check_output, file_for_folder, not_writable

    data = arguments.data
    if data is not None and (wrong := file_for_folder(data, "a folder of evaluation data")):
        raise EvaluationError(f"{wrong}; name its folder")
    if arguments.mteb_results is not None and (wrong := not_writable(arguments.mteb_results / "result.json")):
        raise EvaluationError(f"{wrong}; name a folder for mteb's results")
    own = _check_own_data(arguments)
    if (_on_benchmarks(arguments) or not own) and data is None and (arguments.fetch or not arguments.hub):
        raise SettingsError(
            "no data; give --data DIR (with --fetch to fill it), --hub, or files of yours, such as --pairs FILE"
        )
    if data is not None and not arguments.fetch and not data.is_dir():
        raise EvaluationError(f"{data}: no such folder; give one of evaluation data, or --fetch to make it")
    if arguments.compare and len(set(arguments.models)) + arguments.untrained < 2:
        raise SettingsError("--compare needs two models, or --untrained")
    if arguments.compare and arguments.benchmarks and "sts" not in arguments.benchmarks:
        raise SettingsError("--compare compares models on sts; add it to --benchmarks, or drop --compare")
    for name in arguments.models:
        if wrong := file_for_folder(name, "a model directory"):
            raise ModelDirectoryError(f"{wrong}; name the folder that holds the model")
        may_be_known = name.count("/") < 2 and not name.startswith((".", "/", "~"))  # a name, or one of the hub
        if not Path(name).is_dir() and not may_be_known:
            raise ModelDirectoryError(f"{name}: no such model directory; check the path")
    if arguments.json:
        check_output(arguments.json, overwrite=True)


def _check_own_data(arguments: argparse.Namespace) -> list[Path]:
    """The user's files, which are there; refuses files that lack others, and columns that do not fit."""
    from st_paragram.core.text.tables import check_plain

    retrieval = {f"--{name}": getattr(arguments, name) for name in ("queries", "corpus", "qrels")}
    missing = [option for option, path in retrieval.items() if path is None]
    if 0 < len(missing) < len(retrieval):
        raise SettingsError(f"--queries, --corpus and --qrels belong together; give {' and '.join(missing)}, too")
    if arguments.distractors and not arguments.own_pairs:
        raise SettingsError("--distractors are what --pairs are mined among; give --pairs, too")
    texts = [*arguments.own_pairs, *arguments.graded]
    files = [*texts, *arguments.distractors, *filter(None, retrieval.values())]
    for path in files:
        if not path.is_file():
            raise EvaluationError(f"{path}: no such file; check the path")
    if arguments.columns is None:
        for path in texts:
            check_plain(str(path))
        arguments.columns = ()
    elif not texts or (arguments.own_pairs and arguments.graded):
        raise SettingsError("--columns are of --pairs or of --graded; score the two in two runs")
    elif len(arguments.columns) != (expected := 2 if arguments.own_pairs else 3):
        seen = f"{counted(len(arguments.columns), 'column')}, where {expected} are needed"
        raise SettingsError(f"{seen}; name the two texts of --pairs, or score and sentences of --graded")
    return files


def _benchmarks(arguments: argparse.Namespace) -> list[str]:
    """The benchmarks to run, with their data fetched if that was asked for: those named, or all that have data."""
    from st_paragram.tools.evaluation.benchmarks import BENCHMARKS, benchmarks_in, check_data, missing_package

    asked = list(dict.fromkeys(arguments.benchmarks or ()))
    for benchmark in asked:
        if (reason := missing_package(benchmark)) is not None:
            raise MissingExtraError(f"{benchmark}: {reason}")
        check_data(benchmark, arguments.data)
    if arguments.fetch:
        _fetch(arguments, asked)
    if asked:
        return asked
    found = benchmarks_in(arguments.data) if arguments.data else []
    if arguments.hub:
        found = [name for name, benchmark in BENCHMARKS.items() if name in found or benchmark.on_hub]
    if not found:
        advice = "`st-paragram evaluate --help` describes its content"
        raise EvaluationError(f"{arguments.data}: no data of a benchmark; {advice}")
    skipped = {benchmark: reason for benchmark in found if (reason := missing_package(benchmark)) is not None}
    for benchmark, reason in skipped.items():
        print(f"{benchmark}: left out; {reason}", file=sys.stderr)
    return [benchmark for benchmark in found if benchmark not in skipped]


def _fetch(arguments: argparse.Namespace, asked: list[str]) -> None:
    """Download Tatoeba into the folder."""
    from st_paragram.cli.download import table
    from st_paragram.tools.corpora.download import download
    from st_paragram.tools.evaluation.fetch import missing_tatoeba
    from st_paragram.tools.evaluation.models import find_models

    if asked and "tatoeba" not in asked:
        raise SettingsError("--fetch downloads only tatoeba; for STS give --hub, other data are described in --help")
    find_models(arguments.models)  # before anything is fetched in vain
    files, folder = missing_tatoeba(arguments.data, arguments.languages)
    if files:
        print(f"To be fetched into {folder}:\n{table(files)}", file=sys.stderr)
        download(files, folder)
