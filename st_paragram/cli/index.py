"""`st-paragram index`: build a search index, or change one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.cli.options import (
    add_columns_option,
    add_model_option,
    check_input,
    columns_of,
    model_name,
    say,
)
from st_paragram.core.formatting import counted
from st_paragram.core.outputs import check_output_folder
from st_paragram.errors import MiningError, SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.search.index import SearchIndex
    from st_paragram.tools.search.rows import Fields, Source

DESCRIPTION = (
    "Embed the distinct sentences of FILE (plain, gz, xz, bz2, or - for standard input), one"
    " sentence per line, and store them in a folder for st-paragram search. Lines with fewer than"
    " two letters or digits, or without any token that the model knows, are left out. The command"
    " can also add sentences to an index, delete them, or compact it."
)
EPILOG = """\
  st-paragram index lines.txt.gz --model p-sp-es --output lines.index
  st-paragram index news.jsonl --columns text --metadata lang year --output lines.index
  st-paragram index more.txt --add-to lines.index
  st-paragram index gone.txt --delete-from lines.index
  st-paragram index --delete-from lines.index --where "year < 2020"
  st-paragram index --compact lines.index --approximate --recall 0.99
  st-paragram index --compact lines.index --hybrid
  st-paragram index --export lines.index --output lines.parquet
  st-paragram search lines.index "where is the station"
  st-paragram index answers.txt --answers --model muse-cnn --output answers.index
  st-paragram search answers.index "who wrote it?"

The folder holds a LanceDB table with the sentences, their vectors and fields. It can be searched
only with the same model, and records whether it holds sentences or answers.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", help="text, one sentence per line")
    add_model_option(parser)
    add("--output", type=Path, metavar="FOLDER", help="output folder; with --export, output file")
    folder = parser.add_mutually_exclusive_group()
    changes = {
        "add-to": (
            "add the sentences to; line numbers continue, and existing sentences get the given"
            " fields"
        ),
        "delete-from": "delete sentences from: those in FILE, or those selected by --where",
        "compact": "compact, to free the disk space of deleted sentences",
        "export": "export to a Parquet file (--output), with vectors and fields",
    }
    for name, what in changes.items():
        folder.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=f"index to {what}")
    add(
        "--where",
        metavar="CONDITION",
        help="condition for deletion, on fields or lines, such as 'line in (3, 7)'",
    )
    add_columns_option(parser)
    add(
        "--metadata",
        nargs="+",
        metavar="NAME",
        help="for a table: columns to store as fields of the sentences",
    )
    add(
        "--tag",
        action="append",
        metavar="FIELD=VALUE",
        help="field for all sentences of FILE; repeatable",
    )
    add(
        "--answers",
        action="store_true",
        help="lines are answers to questions; needs a model from train muse",
    )
    about = (
        "make searches approximate and measure their recall; from 200,000 sentences, below which"
        " they stay exact"
    )
    add("--approximate", action="store_true", help=about)
    about = "with --approximate: share of the nearest sentences that searches find (default: 0.95)"
    add("--recall", type=float, metavar="X", help=about)
    add(
        "--hybrid",
        action="store_true",
        help="also index the words of the sentences, for st-paragram search --hybrid",
    )
    add("--overwrite", action="store_true", help="replace an existing output")


_TEXT = {"file", "columns", "metadata", "tag"}
#: Actions, and the options that apply to each.
_ACTIONS = {
    "add_to": _TEXT,
    "delete_from": {"file", "columns", "where"},
    "compact": {"approximate", "recall", "hybrid"},
    "export": {"output", "overwrite"},
    "output": _TEXT | {"answers", "approximate", "recall", "hybrid", "overwrite"},
}


def run(arguments: argparse.Namespace) -> int:
    """Build, change or export the index, and print the counts."""
    from st_paragram.tools.search.index import SearchIndex
    from st_paragram.tools.search.table import FOLDER

    action = _checked(arguments)
    if action == "output":
        check_output_folder(
            arguments.output, arguments.overwrite, FOLDER, "search index", MiningError
        )
        source, fields = _source(arguments)
        index = SearchIndex.build(
            source,
            arguments.output,
            model_name(arguments),
            metadata=fields,
            answers=arguments.answers,
            overwrite=arguments.overwrite,
        )
    else:
        index = SearchIndex(getattr(arguments, action), arguments.model)
    if action == "export":
        index.export(arguments.output, arguments.overwrite)
    elif action == "compact":
        index.compact()
    elif action == "add_to":
        index.add(*_source(arguments))
    elif action == "delete_from":
        sentences = _source(arguments)[0] if arguments.file else None
        count = index.delete(arguments.where, sentences)
        say(f"{index.folder}: {counted(count, 'sentence')} deleted")
    if arguments.hybrid:
        index.index_words()
    if arguments.approximate:
        _approximate(index, arguments.recall)
    counts = index.counts
    if counts:
        others = [f"{counts[name]:,} {name}" for name in ("known", "repeated", "blank", "unknown")]
        say(
            f"{index.folder}: {counted(counts['added'], 'sentence')} added of"
            f" {counted(counts['lines'], 'line')} ({', '.join(others)})"
        )
    say(f"{index.folder}: {counted(len(index), 'sentence')} now")
    return 0


def _approximate(index: SearchIndex, recall: float | None) -> None:
    """Make an index approximate, and print its recall."""
    from st_paragram.tools.search.recall import DEFAULT, SMALLEST

    measurement = index.approximate(DEFAULT if recall is None else recall)
    if measurement is None:
        count = counted(len(index), "sentence")
        say(
            f"{index.folder}: exact search of {count} is fast enough; searches stay exact below"
            f" {SMALLEST:,} sentences"
        )
    else:
        say(f"{index.folder}: {measurement}")


def _checked(arguments: argparse.Namespace) -> str:
    """Return the action; refuse options that do not apply to it."""
    given = [action for action in _ACTIONS if getattr(arguments, action)]
    if not given:
        raise SettingsError(
            "no index; give --output to build one, or --add-to, --delete-from, --compact or"
            " --export"
        )
    action = given[0]
    option = f"--{action.replace('_', '-')}"
    others = set.union(*_ACTIONS.values()) - _ACTIONS[action] - {action}
    for name in sorted(others):
        value = getattr(arguments, name)
        if value is not None and value is not False:
            unwanted = "a file" if name == "file" else f"--{name}"
            raise SettingsError(f"{unwanted} does not apply to {option}; leave it out")
    if action == "export" and not arguments.output:
        raise SettingsError("--export needs the name of a Parquet file; give --output")
    if action == "delete_from" and (arguments.file is None) == (arguments.where is None):
        raise SettingsError(
            "--delete-from needs either a file with sentences or --where; give one of them"
        )
    if action in ("output", "add_to") and not arguments.file:
        raise SettingsError(f"{option} needs a text; give a file with one sentence per line, or -")
    if arguments.metadata and not arguments.columns:
        raise SettingsError(
            "--metadata names columns of a table; also name the text column with --columns"
        )
    if arguments.recall is not None:
        if not arguments.approximate:
            raise SettingsError(
                "--recall needs --approximate; give both, or use --recall of st-paragram search"
            )
        from st_paragram.tools.search.recall import checked_recall

        checked_recall(arguments.recall)
    if arguments.file:
        check_input(arguments.file)
    return action


def _source(arguments: argparse.Namespace) -> tuple[Source, Fields]:
    """Return the sentences, and the fields that all of them share."""
    from st_paragram.tools.search.rows import table_rows, tags_of

    tags = tags_of(arguments.tag or [])
    (column,) = columns_of(arguments.columns, [arguments.file])
    if column:
        return table_rows(arguments.file, column, arguments.metadata or [], tags), {}
    return arguments.file, tags
