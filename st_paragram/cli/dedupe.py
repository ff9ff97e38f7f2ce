"""`st-paragram dedupe`: remove exact and near-duplicates."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

from st_paragram.cli.options import (
    STDOUT,
    add_columns_option,
    check_input,
    is_standard_output,
    output_name,
    say,
    standard_output,
)
from st_paragram.core.files import STDIN, atomic
from st_paragram.core.outputs import check_different, output_files
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.text.tables import check_plain
from st_paragram.errors import SettingsError
from st_paragram.tools.deduplication.settings import DeduplicationSettings, Method

DESCRIPTION = (
    "Remove exact and near-duplicates from a text with one sentence per line, or from a parallel"
    " corpus. The remaining lines are written unchanged and in the same order. A line is removed"
    " only if it duplicates a line that is kept."
)
EPILOG = """\
Two methods find duplicates. A line is removed if either method finds it:

- exact: the words, numbers and symbols are the same, regardless of case, spaces and punctuation
  (see --no-normalize);
- minhash: one line is the other with a few words added, and the share of n-grams in common (the
  Jaccard similarity) is at least --threshold.

Numbers with their marks (1.5, -5, 5'), symbols (C++, 5%, :-)), vowel signs, negations, and words
such as few, half or million are never ignored.

  st-paragram dedupe lines.txt --output clean.txt --removed removed.tsv
  st-paragram dedupe lines.txt --output clean.txt --method exact
  st-paragram dedupe pairs.tsv --pairs --output clean.tsv --sides either
  st-paragram dedupe pairs.csv --columns english spanish --output clean.tsv
  st-paragram dedupe --moses news.en news.es --output clean.en clean.es

MinHash selects pairs of lines, whose n-grams are then compared exactly. So lines with a similarity
below the threshold are never removed. Two lines exactly at the threshold are compared with a
probability of 99%.
"""

_OF_METHODS = {"exact": ["normalize"], "minhash": ["threshold", "unit", "ngram", "bands"]}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add(
        "file",
        nargs="?",
        metavar="FILE",
        help="the text, plain or compressed, or - for standard input",
    )
    add("--pairs", action="store_true", help="FILE has one tab-separated pair per line")
    add(
        "--moses",
        nargs=2,
        metavar=("EN", "XX"),
        help="two files, one per language, instead of FILE",
    )
    add_columns_option(
        parser,
        "for a table (CSV, TSV, JSON lines or Parquet): name of the text column, or names of the"
        " two columns of a parallel corpus; the output has only these columns, tab-separated",
    )
    output = "output file, or two files with --moses (default, or `-`: standard output)"
    add("--output", nargs="+", default=[STDOUT], metavar="OUT", help=output)
    removed = (
        "file for removed lines: rows `line TAB kept line TAB reason TAB text`, line numbers from 1"
    )
    add("--removed", type=Path, metavar="TSV", help=removed)
    add("--overwrite", action="store_true", help="replace existing outputs")
    group = parser.add_argument_group("duplicates")
    methods = "methods that find duplicates (default: exact minhash)"
    group.add_argument(
        "--method", nargs="+", choices=get_args(Method), default=get_args(Method), help=methods
    )
    add_setting_options(group, DeduplicationSettings)


def run(arguments: argparse.Namespace) -> int:
    """Remove duplicates and print the counts."""
    is_parallel = arguments.pairs or arguments.moses or len(arguments.columns or ()) == 2
    columns = 2 if is_parallel else 1
    paths = _paths(arguments, columns)
    outputs = _outputs(arguments)
    values = given(arguments, DeduplicationSettings)
    if "sides" in values and not is_parallel:
        raise SettingsError(
            "--sides is for parallel text; give --pairs or --moses, or leave it out"
        )
    for method, names in _OF_METHODS.items():
        for name in names:
            if name in values and method not in arguments.method:
                raise SettingsError(f"{name} has no effect without --method {method}; leave it out")
    settings = DeduplicationSettings(methods=tuple(arguments.method), **values)
    for text in paths:
        check_input(text)
        if not arguments.columns:
            check_plain(text)
    new_files = [arguments.removed] if arguments.removed else []
    for path, output in zip(paths, outputs, strict=False):
        # an output may replace its own input, by the same name
        if Path(path).absolute() != output.absolute():
            new_files.append(output)
    check_different(new_files, paths)
    with ExitStack() as stack:
        from st_paragram.tools.deduplication.dedupe import deduplicate

        stack.enter_context(
            output_files(*outputs, arguments.removed, overwrite=arguments.overwrite)
        )
        result = deduplicate(paths, columns, settings, names=arguments.columns or ())
        files = [stack.enter_context(atomic(path)) for path in outputs]
        if not files:
            files = [stack.enter_context(standard_output())]
        removed = None
        if arguments.removed:
            removed = stack.enter_context(atomic(arguments.removed))
        result.write(files, removed)
    names = [output_name(output) for output in arguments.output]
    say(f"{' and '.join(names)}: {result.summary()}")
    return 0


def _paths(arguments: argparse.Namespace, columns: int) -> list[str]:
    if bool(arguments.file) == bool(arguments.moses) or (arguments.pairs and arguments.moses):
        raise SettingsError("give one text: FILE, FILE with --pairs, or --moses EN XX")
    if arguments.moses == [STDIN, STDIN]:
        raise SettingsError(
            "only one file of a Moses pair can be standard input; give a path for the other"
        )
    if arguments.columns and (arguments.moses or len(arguments.columns) != columns):
        problem = f"has {len(arguments.columns)} names"
        if arguments.moses:
            problem = "cannot be combined with --moses"
        raise SettingsError(
            f"--columns {problem}; name one column of a text, or two of a parallel corpus (--pairs)"
        )
    return arguments.moses or [arguments.file]


def _outputs(arguments: argparse.Namespace) -> list[Path]:
    """Return the output files; an empty list for standard output."""
    outputs = [Path(name) for name in arguments.output]
    wanted = 2 if arguments.moses else 1
    if len(outputs) != wanted:
        how = "two with" if wanted == 2 else "one without"
        raise SettingsError(f"--output names {len(outputs)} files; give {how} --moses")
    if any(is_standard_output(output) for output in outputs):
        if wanted == 2:
            raise SettingsError("a Moses pair cannot go to standard output; name two files")
        return []
    return outputs
