"""`st-paragram mine`: find translations in two texts, or paraphrases in one."""

from __future__ import annotations

import argparse
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from st_paragram.cli.options import (
    add_columns_option,
    add_model_option,
    add_pair_option,
    chosen_texts,
    columns_of,
    is_standard_output,
    model_name,
    output_name,
    pair_from,
    say,
    standard_output,
)
from st_paragram.core.folders import scratch_folder
from st_paragram.core.formatting import counted
from st_paragram.core.settings import add_setting_options, given
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings

DESCRIPTION = (
    "Find the sentences of two texts that are translations of each other or, with --paraphrase, the"
    " paraphrases within one text. The command embeds all sentences, finds the nearest neighbors of"
    " each, scores these pairs by a margin, and writes the best."
)
EPILOG = """\
A text has one sentence per line, plain or compressed; with --ids, lines are `id TAB sentence`. For
tables, --columns names the sentence column. The output has rows `score TAB source TAB target`, best
pairs first; with --ids, it has ids instead of sentences. With --groups, it has rows `group TAB
sentence`. An output .tmx is a translation memory.

  st-paragram mine --source wiki.en --target wiki.es --output pairs.tsv --threshold 0.1
  st-paragram mine --source wiki.en --target wiki.es --pair en es --output memory.tmx
  st-paragram mine --paraphrase questions.txt --output pairs.tsv --margin absolute --threshold 0.8
  st-paragram mine --paraphrase questions.txt --groups --threshold 0.8 --output groups.tsv
  st-paragram mine --source big.en --target big.es --output pairs.tsv --memory 8G --work mining
  st-paragram mine --source en.parquet --target es.csv --columns text sentence --output - | head

The score of a pair is its cosine minus its background, which is the mean cosine of both sentences
with their nearest neighbors in the other text. --margin ratio divides by the background instead
(Artetxe and Schwenk, 2019). In our tests, its F1 (the harmonic mean of precision and recall) was
between 4 points higher and 8 points lower. A threshold for one margin does not carry over to
another.

As long as it takes only minutes, all sentences are compared with all others. Larger texts are
searched with a faiss index, which finds the nearest neighbor of at least the share --recall of a
sample. If a run is interrupted, the same command resumes it. With --output -, this needs --work;
otherwise intermediate results are in a temporary folder.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("unnamed", nargs="*", help=argparse.SUPPRESS)
    add("--source", metavar="FILE", help="sentences in one language")
    add("--target", metavar="FILE", help="sentences in the other language")
    add(
        "--paraphrase",
        dest="one_text",
        metavar="FILE",
        help="text to find paraphrases in, instead of translations",
    )
    add_columns_option(
        parser, "for tables (CSV, JSON lines, Parquet, or TSV with a header): sentence columns"
    )
    add_model_option(parser)
    add(
        "--output",
        type=Path,
        metavar="PAIRS.tsv",
        help="output file, tab-separated or .tmx (required); `-`: standard output",
    )
    add_pair_option(parser)
    add("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(parser, MiningSettings, only=("with_ids", "most_repeats"))
    pairs = parser.add_argument_group("pairs")
    search = parser.add_argument_group("search")
    add_setting_options(
        pairs,
        MiningSettings,
        only=("neighbors", "margin", "candidates", "threshold", "groups", "min_size"),
    )
    add_setting_options(
        search, MiningSettings, only=("index", "recall", "vector_type", "memory", "seed")
    )
    about = (
        "folder for intermediate results, in st_paragram.work; later runs reuse what has not"
        " changed"
    )
    search.add_argument("--work", type=Path, metavar="DIR", help=about)


def run(arguments: argparse.Namespace) -> int:
    """Mine and print the numbers; return the exit status."""
    from st_paragram.tools.bitext_mining.miner import mine

    options = {
        "--source": arguments.source,
        "--target": arguments.target,
        "--paraphrase": arguments.one_text,
    }
    texts = chosen_texts(arguments, options, ["--source", "--target"], ["--paraphrase"])
    columns = columns_of(arguments.columns, texts)
    values = given(arguments, MiningSettings)
    if arguments.one_text:
        defaults: dict[str, Any] = {"candidates": Candidates.ALL}
        if "groups" in values:
            defaults["margin"] = Margin.ABSOLUTE
        values = defaults | values | {"paraphrase": True}
    settings = MiningSettings(**values)
    model = model_name(arguments)
    output = arguments.output
    with ExitStack() as stack:
        if is_standard_output(output):
            output = stack.enter_context(scratch_folder()) / "pairs.tsv"
        report = mine(
            texts,
            output,
            model,
            settings=settings,
            overwrite=arguments.overwrite,
            work=arguments.work,
            columns=columns,
            languages=pair_from(arguments),
        )
        if output is not arguments.output:
            with standard_output() as stream, output.open("rb") as pairs:
                shutil.copyfileobj(pairs, stream)
    result = counted(report.pairs, "pair")
    if settings.groups:
        result = counted(report.groups, "group")
    say(f"{report.table()}\n{output_name(arguments.output)}: {result}")
    return 0
