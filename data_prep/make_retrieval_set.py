"""Make a test set for semantic retrieval: `python data_prep/make_retrieval_set.py --pairs FILE
--output DIR/NAME`.

`--pairs` takes rows `sentence TAB equivalent sentence` (rows with one sentence are further
candidates), `--askubuntu` the files TEXTS LIST... of taolei87/askubuntu (Lei et al., NAACL 2016):
rows `id TAB title TAB body`, and `id TAB ids of similar questions TAB ids of others`. Groups are
the transitive closure of the pairs: every sentence of a group is a query, and should find the
others (Gillick et al. 2018; Yang et al., ACL 2020). The folder gets queries.tsv, corpus.tsv and
qrels.tsv; `st-paragram evaluate MODEL --data DIR --benchmarks semantic-retrieval` scores models on
it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_text
from st_paragram.core.outputs import check_new
from st_paragram.errors import EvaluationError, TextError, short
from st_paragram.tools.evaluation.files import read_cells

# id -> sentence, and ids of equivalent sentences
Set = tuple[dict[str, str], list[tuple[str, str]]]


def main() -> int:
    """Read, group and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument("--pairs", type=Path, metavar="FILE")
    data.add_argument("--askubuntu", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="output folder")
    arguments = parser.parse_args()
    files = {name: arguments.output / f"{name}.tsv" for name in ("queries", "corpus", "qrels")}
    for path in files.values():
        check_new(path)
    texts = arguments.askubuntu
    corpus, pairs = (
        read_pairs(arguments.pairs) if arguments.pairs else read_askubuntu(texts[0], texts[1:])
    )
    keys = list(corpus)
    members = sorted((row, group) for group in groups_of(corpus, pairs) for row in group)
    qrels = [(keys[row], keys[other]) for row, group in members for other in group if other != row]
    if not qrels:
        raise EvaluationError("no pairs of different sentences; give pairs of equivalent sentences")
    queries = {keys[row]: corpus[keys[row]] for row, _ in members}
    for name, rows in (("queries", queries.items()), ("corpus", corpus.items()), ("qrels", qrels)):
        write_text(files[name], "".join("\t".join(row) + "\n" for row in rows))
    sys.stdout.write(f"{len(queries):,} queries, {len(corpus):,} candidates\n")
    return 0


def groups_of(corpus: dict[str, str], pairs: Sequence[tuple[str, str]]) -> list[list[int]]:
    """Return the rows of the sentences in each group of at least two: connected components of the
    pairs.
    """
    places = {key: row for row, key in enumerate(corpus)}
    edges = [[places[pair[side]] for pair in pairs] for side in (0, 1)]
    graph = coo_array(([1] * len(pairs), edges), shape=(len(corpus), len(corpus)))
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(connected_components(graph, directed=False)[1]):
        groups.setdefault(int(label), []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def read_pairs(path: Path) -> Set:
    """Read rows `sentence TAB equivalent sentence`, or rows with one sentence; equal sentences are
    one candidate.
    """
    ids, pairs = dict[str, str](), []
    for number, cells in read_cells(path, 1, 2):
        if not all(cell.strip() for cell in cells):
            raise TextError(
                f"{path}: row {number}: an empty sentence; complete the row or remove it"
            )
        keys = [ids.setdefault(cell, f"s{len(ids)}") for cell in cells]
        pairs.append((keys[0], keys[-1]))
    return {key: text for text, key in ids.items()}, pairs


def read_askubuntu(texts: Path, lists: Sequence[Path]) -> Set:
    """Read the titles of the questions that the lists name; the same title is the same question."""
    titles = {cells[0]: cells[1] for _, cells in read_cells(texts, 2, 3)}
    first, corpus, pairs = dict[str, str](), dict[str, str](), []
    for path in lists:
        for number, cells in read_cells(path, 2, 4):
            similar = cells[1].split()
            ids = [cells[0], *similar, *(cells[2].split() if len(cells) > 2 else ())]
            if (
                absent := next((key for key in ids if not titles.get(key, "").strip()), None)
            ) is not None:
                raise TextError(
                    f"{path}: row {number}: no title of question {short(absent)} in {texts};"
                    " complete it"
                )
            same = [first.setdefault(titles[key], key) for key in ids]
            corpus |= {key: titles[key] for key in same}
            pairs += [(same[0], other) for other in same[1 : 1 + len(similar)]]
    return corpus, pairs


if __name__ == "__main__":
    sys.exit(run_reporting_errors("make_retrieval_set", main))
