"""`st-paragram mine`: find sentences of two texts, or of one, that mean the same."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.cli.executor_options import add_executor_options, executor_from
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.bitext_mining.miner import Work
    from st_paragram.bitext_mining.settings import MiningSettings

_EPILOG = """\
Texts have a sentence a line, plain or compressed; with --ids, `id TAB sentence`. The output is `score TAB source TAB
target`, best pairs first; with --ids, ids in place of sentences.

  st-paragram mine --source wiki.en --target wiki.es --model p-sp-es --output pairs.tsv --threshold 1.06
  st-paragram mine --paraphrase questions.txt --model p-sp-en --output pairs.tsv --margin absolute --threshold 0.8
  st-paragram mine --source big.en --target big.es --output pairs.tsv --memory 8G --workers 4 --work mining

All sentences are compared with all others while that takes minutes; beyond, with an inexact index that finds the
nearest neighbour of at least --recall of a sample. A run that was interrupted goes on where it stopped.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser(
        "mine",
        help="find translations, or paraphrases, among sentences",
        description="Embed, search for neighbours, score by margin, choose pairs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, for the command and for the recipe that does the same."""
    add = parser.add_argument
    add("--source", metavar="FILE", help="sentences of one language")
    add("--target", metavar="FILE", help="sentences of the other")
    add("--paraphrase", metavar="FILE", help="look within this text instead")
    add("--documents", type=Path, metavar="LIST", help="rows `source file TAB target file`: look within these pairs")
    add("--ids", action="store_true", help="lines are `id TAB sentence` (BUCC); ids come out")
    add("--model", help="model directory, name or hub id (the only ./p-sp-* if not given)")
    add("--output", type=Path, required=True, metavar="PAIRS.tsv")
    add("--overwrite", action="store_true", help="replace an output that exists")
    add("--max-repeats", type=int, metavar="N", help="leave out sentences that occur more than N times")
    add = parser.add_argument_group("pairs").add_argument
    add("-k", type=int, default=4, help="neighbours of each sentence (%(default)s)")
    add("--margin", choices=("ratio", "distance", "absolute"), default="ratio", help="score (%(default)s)")
    add(
        "--candidates",
        choices=("forward", "backward", "intersection", "max", "all"),
        help="pairs put forward (max: each sentence once, best first; with --paraphrase all)",
    )
    add("--threshold", type=float, metavar="T", help="least score of a pair")
    add = parser.add_argument_group("search").add_argument
    add("--index", default="auto", help="Flat (exact), a faiss factory string such as IVF2048,SQfp16, or %(default)s")
    add(
        "--recall",
        type=float,
        default=0.9,
        help="nearest neighbours that an inexact index must find (%(default)s)",
    )
    add("--precision", choices=("float16", "int8"), default="float16", help="of embeddings on disk (%(default)s)")
    add("--memory", default="4G", help="for vectors and indexes, all processes together (%(default)s)")
    add("--shard-rows", type=int, default=1 << 15, help="sentences of one task (%(default)s)")
    add("--work", type=Path, metavar="DIR", help="keep results of stages here: later runs redo only what changed")
    add("--force", metavar="STAGE", help="do this stage and those after it again")
    add_executor_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Mine and print the numbers; returns the exit status.

    Raises:
        ParagramError: Texts, settings or the model are refused.
    """
    from st_paragram.bitext_mining.margin import Candidates, Margin
    from st_paragram.bitext_mining.miner import Work, mine
    from st_paragram.bitext_mining.settings import MiningSettings, parse_memory
    from st_paragram.models.find import only_model_here
    from st_paragram.search.vectors import Precision

    texts = [] if arguments.documents else _texts(arguments)
    settings = MiningSettings(
        k=arguments.k,
        margin=Margin(arguments.margin),
        candidates=Candidates(arguments.candidates or ("all" if arguments.paraphrase else "max")),
        threshold=arguments.threshold,
        paraphrase=arguments.paraphrase is not None,
        index=arguments.index,
        recall=arguments.recall,
        precision=Precision(arguments.precision),
        memory=parse_memory(arguments.memory),
        shard_rows=arguments.shard_rows,
        with_ids=arguments.ids,
        most_repeats=arguments.max_repeats,
    )
    model = arguments.model or str(only_model_here())
    executor = executor_from(arguments, arguments.work)
    work = Work(arguments.work, arguments.work is not None, arguments.force, executor, arguments.workers)
    if arguments.documents:
        return _mine_documents(arguments, model, settings, work)
    report = mine(texts, arguments.output, model, settings, arguments.overwrite, work)
    sys.stdout.write(f"{report.table()}\n{arguments.output}: {report.pairs:,} pairs\n")
    return 0


def _mine_documents(arguments: argparse.Namespace, model: str, settings: MiningSettings, work: Work) -> int:
    from st_paragram.alignment.documents import mine_documents

    if arguments.source or arguments.target or arguments.paraphrase:
        raise SettingsError("--documents beside --source, --target or --paraphrase; give the list alone")
    report = mine_documents(arguments.documents, arguments.output, model, settings, arguments.overwrite, work)
    seen = f"{report.documents:,} pairs of documents with {report.source:,} and {report.target:,} sentences"
    sys.stdout.write(f"{seen}\n{arguments.output}: {report.pairs:,} pairs\n")
    return 0


def _texts(arguments: argparse.Namespace) -> list[str]:
    given = [name for name in ("source", "target", "paraphrase") if getattr(arguments, name)]
    if given not in (["source", "target"], ["paraphrase"]):
        seen = ", ".join(f"--{name}" for name in given) or "nothing"
        raise SettingsError(f"{seen} given; give --source and --target, --paraphrase or --documents")
    return [getattr(arguments, name) for name in given]
