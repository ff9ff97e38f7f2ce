"""`st-paragram search`: find sentences like others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from st_paragram.core.files import check_output
from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import check_input, output_opened
from st_paragram.tools.search.settings import SearchSettings

DESCRIPTION = (
    "Write `score TAB line number TAB sentence` for the sentences of an index (st-paragram index) that are "
    "nearest to a query, best first; the score is their cosine. With several queries, or --queries, each "
    "row begins with its query. An index with fewer than -k sentences returns them all. Search an index of "
    "answers (st-paragram index --answers) with questions. Without a query, at a terminal, the command "
    "prompts for queries."
)
EPILOG = """\
  st-paragram search lines.index "where is the station" -k 5
  st-paragram search lines.index "where is the station" --where lang=es,fr --where "year>=2020" --show-metadata
  st-paragram search lines.index --queries questions.txt --output found.tsv
  st-paragram search lines.index
"""

STDOUT = "-"
_BLOCK = 4096  # queries searched together


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="index from st-paragram index")
    add("query", nargs="*", metavar="QUERY", help="sentence to search for")
    add("--queries", metavar="FILE", help="queries, one per line, plain or compressed, or -; blank lines are skipped")
    add("-k", type=int, default=10, metavar="N", help="sentences to show per query (default: %(default)s)")
    add("--threshold", type=float, metavar="COSINE", help="minimum cosine (default: none)")
    add(
        "--where",
        action="append",
        metavar="FIELD=VALUE",
        help="find only sentences with this field; operators: = != < <= > >=, with comma-separated values for = "
        "and !=; repeatable, all conditions must hold",
    )
    add("--show-metadata", action="store_true", help="end each row with the sentence's fields, as JSON")
    add("--output", type=Path, metavar="OUT.tsv", help="output file; - or nothing for standard output")
    add("--overwrite", action="store_true", help="replace an existing output")
    add(
        "--model",
        metavar="NAME",
        help="location of the index's model (default: the name that the index was built with)",
    )
    add(
        "--effort",
        type=int,
        metavar="N",
        help="lists (IVF) or nodes (HNSW) of an approximate index to visit per query; more find more and take "
        "longer (default: measured when the index was built)",
    )
    add_setting_options(parser, SearchSettings, only=("memory",))


def run(arguments: argparse.Namespace) -> int:
    """Search and write what was found.

    Raises:
        ParagramError: No query, or index, model or output are refused.
    """
    from st_paragram.tools.search.prompt import Prompt, shown
    from st_paragram.tools.search.search_index import SearchIndex

    arguments.output = None if str(arguments.output) == STDOUT else arguments.output
    _check(arguments)
    settings = SearchSettings(**given(arguments, SearchSettings))
    index = SearchIndex(arguments.folder, arguments.model, settings.memory)
    index.effort = arguments.effort or index.effort
    named = len(arguments.query) != 1
    if _at_prompt(arguments):
        Prompt(index, _print, arguments.k, arguments.threshold, arguments.where or []).run()
        return 0
    queries = iter(arguments.query) if arguments.query else _queries(arguments.queries)
    with output_opened(arguments.output, arguments.overwrite) as handle:
        while block := list(islice(queries, _BLOCK)):
            found = index.search(block, arguments.k, arguments.threshold, arguments.where)
            for query, hits in zip(block, found, strict=True):
                start = " ".join(query.split()) + "\t" if named else ""
                handle.writelines(f"{start}{shown(hit, arguments.show_metadata)}\n" for hit in hits)
    return 0


def _at_prompt(arguments: argparse.Namespace) -> bool:
    """Whether queries are asked for at a terminal."""
    given = arguments.query or arguments.queries or arguments.output
    return not given and sys.stdin is not None and sys.stdin.isatty()


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what can be refused without the index."""
    if bool(arguments.query) == bool(arguments.queries) and not _at_prompt(arguments):
        raise SettingsError("give queries either as arguments or in a file (--queries)")
    if not all(map(str.strip, arguments.query)):
        raise SettingsError("a query is blank; give a sentence")
    for name in ("k", "effort"):
        if (value := getattr(arguments, name)) is not None and value < 1:
            raise SettingsError(f"{name} is {value}; it must be at least 1")
    if arguments.queries:
        check_input(arguments.queries)
    if arguments.output:
        check_output(arguments.output, arguments.overwrite)


def _queries(path: str) -> Iterator[str]:
    from st_paragram.core.text.streams import read_lines

    found = 0
    for line in read_lines(path):
        if line.strip():
            found += 1
            yield line
    if not found:
        raise SettingsError(f"{path}: no queries; give a file with one sentence per line")
