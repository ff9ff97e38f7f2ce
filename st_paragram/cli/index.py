"""`st-paragram index`: make a text searchable."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.files import check_output_folder
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.words import counted
from st_paragram.errors import MiningError
from st_paragram.tools.options.columns import add_columns_option, columns_of
from st_paragram.tools.options.common import add_model_option, model_name, say
from st_paragram.tools.search.settings import FLAT, SearchSettings

if TYPE_CHECKING:
    from st_paragram.tools.search.search_index import SearchIndex
    from st_paragram.tools.search.tagged_texts import TaggedTexts

DESCRIPTION = (
    "Embed the distinct sentences of FILE (plain, gz, xz, bz2, or - for standard input), one sentence per "
    "line, and store them in a folder for st-paragram search. Lines of fewer than two letters or digits "
    "are left out. Or change an existing index: add the sentences of FILE, delete them, or compact the "
    "index."
)
EPILOG = """\
  st-paragram index lines.txt.gz --model p-sp-es --output lines.index
  st-paragram index news.jsonl --columns text --metadata lang year --tag source=news --output lines.index
  st-paragram index more.txt --add-to lines.index
  st-paragram index gone.txt --delete-from lines.index
  st-paragram index --delete-from lines.index --where "year<2020"
  st-paragram index --compact lines.index
  st-paragram search lines.index "where is the station"
  st-paragram index answers.txt --answers --model muse-cnn --output answers.index
  st-paragram search answers.index "who wrote it?"

The folder holds the distinct sentences, their vectors and, unless every query is compared with all of them (Flat), an
index of faiss. It can be searched only with the same model, and records whether it holds sentences or answers. faiss
hardly checks the files that it reads: search folders of people you trust.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", help="text, one sentence per line")
    add_model_option(parser)
    folder = parser.add_mutually_exclusive_group(required=True)
    folder.add_argument("--output", type=Path, metavar="FOLDER", help="output folder")
    folder.add_argument(
        "--add-to",
        type=Path,
        metavar="FOLDER",
        help="index to add the sentences to; line numbers continue from its last line, and known sentences get "
        "the given fields",
    )
    folder.add_argument(
        "--delete-from",
        type=Path,
        metavar="FOLDER",
        help="index to delete sentences from: those of FILE, or those selected by --lines or --where",
    )
    folder.add_argument(
        "--compact",
        type=Path,
        metavar="FOLDER",
        help="index to rewrite as one segment without deleted sentences; nothing is embedded",
    )
    add("--lines", nargs="+", metavar="N", help="lines to delete: numbers as shown by search, and ranges such as 10-20")
    add(
        "--where",
        action="append",
        metavar="FIELD=VALUE",
        help="delete sentences with this field, as in st-paragram search; repeatable, all conditions must hold",
    )
    add_columns_option(parser)
    add("--metadata", nargs="+", metavar="NAME", help="for a table: columns to keep as sentence fields")
    add("--tag", action="append", metavar="FIELD=VALUE", help="field for all these sentences; repeatable")
    add(
        "--answers",
        action="store_true",
        help="lines are answers, to be searched with questions; needs a model from train muse",
    )
    add("--overwrite", action="store_true", help="replace an existing index")
    add_setting_options(parser, SearchSettings)


def run(arguments: argparse.Namespace) -> int:
    """Build or change the index, and say what it is.

    Raises:
        ParagramError: Text, settings, model or output are refused.
    """
    settings = SearchSettings(**given(arguments, SearchSettings))
    return _build(arguments, settings) if arguments.output else _change(arguments, settings)


def _build(arguments: argparse.Namespace, settings: SearchSettings) -> int:
    from st_paragram.tools.options.index_changes import check_build
    from st_paragram.tools.search.index_metadata import METADATA_FILE
    from st_paragram.tools.search.search_index import SearchIndex

    check_build(arguments)
    check_output_folder(arguments.output, arguments.overwrite, METADATA_FILE, "search index", MiningError)
    model, source = model_name(arguments), _source(arguments)
    built = SearchIndex.build(source, arguments.output, model, settings, arguments.overwrite, arguments.answers)
    _say(built, settings)
    return 0


def _say(built: SearchIndex, settings: SearchSettings) -> None:
    """Say what was built."""
    from st_paragram.tools.search.content import Content
    from st_paragram.tools.search.effort import describe_recall

    metadata, counts = built.metadata, built.sentences.counts
    sentences = f"{counted(counts.sentences, 'sentence')} of {counted(counts.lines, 'line')}"
    left_out = f"{counts.repeated:,} repeated, {counts.blank + counts.near_empty:,} blank or nearly so"
    say(f"{built.folder}: {sentences} ({left_out}, {counts.boilerplate:,} too frequent)")
    found = describe_recall(metadata.recall, metadata.recall_at_k, metadata.neighbours)
    how = "exact search" if metadata.factory == FLAT else f"finds {found}"
    stored = f"{metadata.vector_type} vectors of {counted(metadata.dimension, 'component')} by {metadata.model}"
    say(f"{metadata.factory}: {how}; {stored}{', of answers' if built.content is Content.ANSWERS else ''}")
    if metadata.recall < settings.recall:
        say(f"below the {100 * settings.recall:.1f} % asked for; choose another --index, or Flat")


def _source(arguments: argparse.Namespace) -> str | TaggedTexts:
    """The sentences, with fields if there are any."""
    from st_paragram.tools.search.tagged_texts import constant_tags, tagged, tagged_table

    tags, (column,) = constant_tags(arguments.tag or []), columns_of(arguments.columns, [arguments.file])
    if column:
        return tagged_table(arguments.file, column, arguments.metadata or [], tags)
    return tagged(arguments.file, tags) if tags else str(arguments.file)


def _change(arguments: argparse.Namespace, settings: SearchSettings) -> int:
    """Add, delete or compact."""
    from st_paragram.tools.options import index_changes as changes

    changes.check(arguments)
    index = changes.opened(arguments, settings)
    if arguments.add_to:
        changes.add(index, _source(arguments), settings)
    elif arguments.delete_from:
        changes.delete(index, arguments, None if arguments.file is None else _source(arguments))
    else:
        changes.compact(index, settings)
    return 0
