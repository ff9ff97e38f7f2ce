"""`st-paragram search`: find the sentences most similar to a query."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from st_paragram.cli.options import (
    check_input,
    is_standard_output,
    model_name,
    output_opened,
    say,
)
from st_paragram.core.files import is_pipe
from st_paragram.core.formatting import counted
from st_paragram.core.outputs import check_output
from st_paragram.core.text.streams import stream_name
from st_paragram.core.text.tables import check_plain
from st_paragram.errors import MiningError, SettingsError

DESCRIPTION = (
    "Find the sentences nearest to a query, in an index (from st-paragram index) or in a text with"
    " one sentence per line, which is embedded each time. The output has rows `score TAB line"
    " number TAB sentence`, best first. The score is the cosine, also with --hybrid. With several"
    " queries, or --queries, each row begins with its query."
)
EPILOG = """\
  st-paragram search lines.txt "where is the station" -k 5
  st-paragram search lines.index "late bus" --where "lang = 'es' and year >= 2020" --show-metadata
  st-paragram search lines.index "error E-1042" --hybrid
  st-paragram search lines.index --queries questions.txt --recall 0.99 --output found.tsv
"""

_BLOCK = 4096  # queries embedded together


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("source", metavar="INDEX|FILE", help="index folder, or text with one sentence per line")
    add("query", nargs="*", metavar="QUERY", help="sentence to search for")
    add(
        "--queries",
        metavar="FILE",
        help="queries, one per line, plain or compressed, or -; blank lines are skipped",
    )
    add(
        "-k",
        type=int,
        default=10,
        metavar="N",
        help="number of sentences per query (default: %(default)s)",
    )
    add("--threshold", type=float, metavar="COSINE", help="minimum cosine (default: none)")
    add(
        "--where",
        metavar="CONDITION",
        help="condition on the fields of an index, such as \"lang = 'es' and year >= 2020\"",
    )
    about = (
        "for an approximate index: share of the nearest sentences to find; 1: exact (default: the"
        " index's recall)"
    )
    add("--recall", type=float, metavar="X", help=about)
    about = (
        "also find sentences of an index that share words with the query (needs an index made with"
        " --hybrid)"
    )
    add("--hybrid", action="store_true", help=about)
    add(
        "--show-metadata",
        action="store_true",
        help="append the sentence's fields to each row, as JSON",
    )
    add(
        "--output",
        type=Path,
        metavar="OUT.tsv",
        help="output file (default, or `-`: standard output)",
    )
    add("--overwrite", action="store_true", help="replace an existing output")
    about = (
        "model, here or as the first argument (default: the index's model; for a text, as in"
        " st-paragram index)"
    )
    add("--model", metavar="NAME", help=about)


def run(arguments: argparse.Namespace) -> int:
    """Search and write the results."""
    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.tools.search.recall import checked_recall
    from st_paragram.tools.search.text_search import TextSearch, checked_k

    if not arguments.query and not arguments.queries:
        raise SettingsError(
            f"no query for {arguments.source}; give queries as arguments or in a file (--queries)"
        )
    if arguments.query and arguments.queries:
        raise SettingsError(
            f"queries as arguments and in {arguments.queries}; give either arguments or --queries"
        )
    checked_k(arguments.k)
    if arguments.queries:
        check_input(arguments.queries)
    if not is_standard_output(arguments.output):
        check_output(arguments.output, arguments.overwrite)
    options: dict[str, Any] = {}
    if arguments.where is not None:
        options["where"] = arguments.where
    if arguments.recall is not None:
        options["recall"] = checked_recall(arguments.recall)
    if arguments.hybrid:
        options["hybrid"] = True
    source = Path(arguments.source)
    index: Any
    if source.is_file() or (is_pipe(source) and not source.is_dir()):
        check_plain(arguments.source)
        if arguments.show_metadata:
            options["show-metadata"] = True
        for name in options:
            raise SettingsError(f"--{name} needs an index, but {source} is a text; index it first")
        index = TextSearch(arguments.source, load_encoder(model_name(arguments)))
        if not index.sentences and not index.unknown:
            raise MiningError(
                f"{stream_name(arguments.source)}: no sentences; give a text with one sentence per"
                " line"
            )
        if index.unknown:
            left_out = f"{counted(index.unknown, 'sentence')} without a known token left out"
            say(f"{stream_name(arguments.source)}: {left_out}")
    else:
        from st_paragram.tools.search.index import SearchIndex

        index = SearchIndex(arguments.source, arguments.model)
    queries = iter(arguments.query) if arguments.query else _queries(arguments.queries)
    with output_opened(arguments.output, arguments.overwrite) as handle:
        while block := list(islice(queries, _BLOCK)):
            results = index.search(block, arguments.k, arguments.threshold, **options)
            for query, hits in zip(block, results, strict=True):
                for hit in hits:
                    row = f"{hit.score:.6f}\t{hit.line}\t{hit.sentence}"
                    if len(arguments.query) != 1:
                        row = f"{' '.join(query.split())}\t{row}"
                    if arguments.show_metadata:
                        row += f"\t{json.dumps(hit.metadata, ensure_ascii=False)}"
                    handle.write(f"{row}\n")
    return 0


def _queries(path: str) -> Iterator[str]:
    from st_paragram.core.text.streams import read_lines

    is_empty = True
    for line in read_lines(path):
        if line.strip():
            is_empty = False
            yield line
    if is_empty:
        raise SettingsError(f"{path}: no queries; give a file with one sentence per line")
