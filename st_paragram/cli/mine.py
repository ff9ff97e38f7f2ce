"""`st-paragram mine`: find sentences of two texts, or of one, that mean the same."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.options.columns import add_columns_option, columns_of
from st_paragram.tools.options.common import (
    add_model_option,
    check_input,
    is_standard_output,
    model_name,
    output_name,
    say,
    standard_output,
)
from st_paragram.tools.options.executor import add_executor_options, executor_from

if TYPE_CHECKING:
    from st_paragram.tools.stages.work import Work

DESCRIPTION = (
    "Find the sentences of two texts that are translations of each other or, with --paraphrase, the paraphrases within "
    "one text. All sentences are embedded, the nearest neighbors of each are looked up, the pairs of neighbors are "
    "scored by a margin, and the best are written."
)
EPILOG = """\
A text has one sentence per line, plain or compressed; with --ids, lines are `id TAB sentence`. For tables, --columns
names the column that has the sentences. The output has rows `score TAB source TAB target`, the best pairs first; with
--ids, it has ids instead of sentences.

  st-paragram mine --source wiki.en --target wiki.es --model p-sp-es --output pairs.tsv --threshold 0.1
  st-paragram mine --paraphrase questions.txt --model p-sp-en --output pairs.tsv --margin absolute --threshold 0.8
  st-paragram mine --source big.en --target big.es --output pairs.tsv --memory 8G --workers 4 --work mining
  st-paragram mine --source en.parquet --target es.csv --columns text sentence --output - | head

The score of a pair is its cosine minus its background, which is the mean cosine of both sentences with their k nearest
neighbors in the other text. --margin ratio divides by the background instead (Artetxe and Schwenk, 2019). In our
tests, its F1 (the harmonic mean of precision and recall) was from 4 points higher to 8 points lower. A threshold for
one margin does not carry over to another.

All sentences are compared with all others as long as that takes only minutes. Beyond that, an approximate index is
used. It finds the nearest neighbor for at least the share --recall of a sample. If a run is interrupted, the same
command resumes it. With --output -, it can do so only if --work names a folder: results are in a temporary folder
otherwise.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, for the command and for the recipe that does the same."""
    add = parser.add_argument
    add("--source", metavar="FILE", help="sentences in one language")
    add("--target", metavar="FILE", help="sentences in the other language")
    add("--paraphrase", dest="one_text", metavar="FILE", help="text to find paraphrases in, instead of translations")
    add(
        "--documents",
        type=Path,
        metavar="LIST",
        help="list with rows `source file TAB target file`: mine within each of these pairs instead",
    )
    add_columns_option(parser, "for tables (CSV, JSON lines, Parquet, or TSV with a header): sentence columns")
    add_model_option(parser)
    add("--output", type=Path, required=True, metavar="PAIRS.tsv", help="output file; `-`: standard output")
    add("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(parser, MiningSettings, only=("with_ids", "most_repeats"))
    pairs, search = (parser.add_argument_group(title) for title in ("pairs", "search"))
    add_setting_options(pairs, MiningSettings, only=("k", "margin", "candidates", "threshold"))
    add_setting_options(search, MiningSettings, only=("index", "recall", "vector_type", "memory", "seed", "shard_rows"))
    search.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="folder for the results of all stages; later runs redo only what has changed",
    )
    search.add_argument(
        "--force",
        metavar="STAGE",
        help="repeat this stage and the later ones even if nothing has changed, e.g. because a stored result is "
        "damaged: sentences, embed, index, effort, search or pairs",
    )
    add_executor_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Mine and print the numbers; returns the exit status.

    Raises:
        ParagramError: Texts, settings or the model are refused.
    """
    if not is_standard_output(arguments.output):
        return _run(arguments, arguments.output)
    with TemporaryDirectory(prefix="st-paragram-") as folder:
        output = Path(folder) / "pairs.tsv"
        status = _run(arguments, output)
        with standard_output() as stream, output.open("rb") as pairs:
            shutil.copyfileobj(pairs, stream)
    return status


def _run(arguments: argparse.Namespace, output: Path) -> int:
    from st_paragram.tools.bitext_mining.miner import mine
    from st_paragram.tools.stages.work import Work

    texts = _texts(arguments)
    for text in texts:
        check_input(text)
    columns = columns_of(arguments.columns, texts)
    settings = _settings(arguments)
    executor = executor_from(arguments, arguments.work)
    temporary = arguments.work is None and is_standard_output(arguments.output)
    work = Work(arguments.work, arguments.work is not None, arguments.force, executor, temporary=temporary)
    model = model_name(arguments)
    if arguments.documents:
        return _mine_documents(arguments, output, model, settings, work)
    report = mine(texts, output, model, settings, arguments.overwrite, work, columns)
    say(f"{report.table()}\n{output_name(arguments.output)}: {counted(report.pairs, 'pair')}")
    return 0


def _settings(arguments: argparse.Namespace) -> MiningSettings:
    values = given(arguments, MiningSettings)
    if arguments.one_text is not None:
        values = {"candidates": Candidates.ALL} | values | {"paraphrase": True}
    return MiningSettings(**values)


def _mine_documents(
    arguments: argparse.Namespace, output: Path, model: str, settings: MiningSettings, work: Work
) -> int:
    from st_paragram.tools.alignment.documents import mine_documents

    report = mine_documents(arguments.documents, output, model, settings, arguments.overwrite, work)
    seen = f"{counted(report.documents, 'pair')} of documents with {report.source:,} and {report.target:,} sentences"
    say(f"{seen}\n{output_name(arguments.output)}: {counted(report.pairs, 'pair')}")
    return 0


def _texts(arguments: argparse.Namespace) -> list[str]:
    options = {"source": arguments.source, "target": arguments.target, "paraphrase": arguments.one_text}
    given_ones = [name for name, value in options.items() if value]
    if arguments.documents:
        if given_ones:
            raise SettingsError(
                "--documents cannot be combined with --source, --target or --paraphrase; give only the list"
            )
        return []
    if given_ones not in (["source", "target"], ["paraphrase"]):
        seen = ", ".join(f"--{name}" for name in given_ones) or "nothing"
        raise SettingsError(f"{seen} given; give --source and --target, --paraphrase or --documents")
    return [options[name] for name in given_ones]
