"""`st-paragram index`: make a text searchable."""

from __future__ import annotations

import argparse
from pathlib import Path

from st_paragram.core.files import check_output_folder
from st_paragram.core.plan import Plan
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.value_words import counted
from st_paragram.errors import MiningError
from st_paragram.tools.options.common import (
    add_model_option,
    add_plan_option,
    check_input,
    model_name,
    print_plan,
    say,
)
from st_paragram.tools.search.settings import FLAT, SearchSettings

DESCRIPTION = (
    "Embed the distinct sentences of FILE (plain, gz, xz, bz2, or - for standard input), a sentence a line, and "
    "keep them in a folder for st-paragram search. Lines of fewer than two letters or digits are left out."
)
EPILOG = """\
  st-paragram index lines.txt.gz --model p-sp-es --output lines.index
  st-paragram search lines.index "where is the station"
  st-paragram index answers.txt --answers --model muse-cnn --output answers.index
  st-paragram search answers.index "who wrote it?"

The folder holds the distinct sentences, their vectors and, unless every query is compared with all of them (Flat), an
index of faiss. It can be searched with the same model only, and remembers whether it is of sentences or of answers.
faiss hardly checks the files that it reads: search folders of people you trust.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("file", metavar="FILE", help="the text, a sentence a line")
    add_model_option(parser)
    add("--output", type=Path, required=True, metavar="FOLDER", help="the folder to make")
    add(
        "--answers",
        action="store_true",
        help="the lines are answers, to be searched with questions; needs a model of train muse",
    )
    add("--overwrite", action="store_true", help="replace an index that exists")
    add_setting_options(parser, SearchSettings)
    add_plan_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Build the index and say what it is.

    Raises:
        ParagramError: Text, settings, model or output are refused.
    """
    from st_paragram.tools.search.effort import describe_recall
    from st_paragram.tools.search.index_metadata import METADATA_FILE
    from st_paragram.tools.search.search_index import SearchIndex

    settings = SearchSettings(**given(arguments, SearchSettings))
    check_input(arguments.file)
    check_output_folder(arguments.output, arguments.overwrite, METADATA_FILE, "index", MiningError)
    if arguments.plan:
        return print_plan(_plan(arguments, settings))
    model = model_name(arguments)
    built = SearchIndex.build(arguments.file, arguments.output, model, settings, arguments.overwrite, arguments.answers)
    metadata, counts = built.metadata, built.sentences.counts
    sentences = f"{counted(counts.sentences, 'sentence')} of {counted(counts.lines, 'line')}"
    left_out = f"{counts.repeated:,} repeated, {counts.blank + counts.near_empty:,} blank or nearly so"
    say(f"{arguments.output}: {sentences} ({left_out}, {counts.boilerplate:,} too frequent)")
    found = describe_recall(metadata.recall, metadata.recall_at_k, metadata.neighbours)
    how = "exact search" if metadata.factory == FLAT else f"finds {found}"
    stored = f"{metadata.vector_type} vectors of {counted(metadata.dimension, 'component')} by {metadata.model}"
    say(f"{metadata.factory}: {how}; {stored}{', of answers' if arguments.answers else ''}")
    if metadata.recall < settings.recall:
        say(f"that is less than the {100 * settings.recall:.1f} % asked for; choose another --index, or Flat")
    return 0


def _plan(arguments: argparse.Namespace, settings: SearchSettings) -> Plan:
    """What would be done."""
    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.tools.options.plans import planned_model
    from st_paragram.tools.options.search_plans import planned_sentences, search_in_words, search_needs
    from st_paragram.tools.search.content import Content
    from st_paragram.tools.search.index_folder import USUAL_QUERIES

    text, model = planned_sentences(arguments.file, settings), planned_model(arguments.model)
    if arguments.answers and model.fast and model.folder:
        Content.ANSWERS.check(load_encoder(model.folder), model.name)
    what = "answers" if arguments.answers else "sentences"
    return Plan(
        "make a text searchable",
        [text.line, model.line],
        [f"{arguments.output}: an index of {what}, at most as many as there are lines"],
        [search_in_words(settings, USUAL_QUERIES, text.rows, model)],
        search_needs(settings, 0, text.rows, model, texts=1),
    )
