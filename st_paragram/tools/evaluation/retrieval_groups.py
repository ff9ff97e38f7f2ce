"""Retrieval sets built from pairs of equivalent sentences (Gillick, Presta and Tomar 2018; Yang et al., ACL 2020, SR).

The pairs are edges of a graph. Its connected components are groups of equivalent sentences: the transitive closure of
the pairs. Every sentence of a group is a query, and the others of its group are what it should find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from st_paragram.errors import EvaluationError, TextError, short
from st_paragram.tools.evaluation.retrieval_files import RetrievalSet, cells_of


def retrieval_set(name: str, corpus: Mapping[str, str], pairs: Iterable[tuple[str, str]]) -> RetrievalSet:
    """The set whose queries are all sentences of the pairs, in the order of the corpus.

    Args:
        name: of the set.
        corpus: id -> sentence, of all candidates.
        pairs: ids of equivalent sentences, all of the corpus; one of a sentence with itself says nothing.

    Raises:
        EvaluationError: there are no pairs.
    """
    rows = {key: row for row, key in enumerate(corpus)}
    groups = groups_of(len(rows), [(rows[first], rows[second]) for first, second in pairs])
    members = {row: group for group in groups for row in group}
    if not members:
        raise EvaluationError(f"{name}: no pairs of different sentences; give pairs of equivalent sentences")
    queries = {key: corpus[key] for key, row in rows.items() if row in members}
    relevant = tuple(np.array([other for other in members[rows[key]] if other != rows[key]]) for key in queries)
    return RetrievalSet(name, queries, dict(corpus), ("",) * len(corpus), relevant)


def groups_of(count: int, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Connected components of more than one of the nodes 0 .. count - 1, each ascending."""
    edges = np.array(pairs, np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(connected_components(graph, directed=False)[1] if count else ()):
        groups.setdefault(int(label), []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def read_pairs_of_sentences(path: str | Path, name: str = "") -> RetrievalSet:
    """A set of a file `sentence TAB equivalent sentence`; equal sentences are one candidate.

    A row of one sentence alone is a candidate that no one should find.

    Raises:
        EvaluationError: there are no pairs.
        TextError: the file cannot be read, or (with its number) a row has more columns or an empty sentence.
    """
    path, corpus, pairs = Path(path), dict[str, str](), []
    for number, cells in cells_of(path, 1, 2):
        if not all(cell.strip() for cell in cells):
            raise TextError(f"{path}: row {number}: an empty sentence; complete the row or take it out")
        ids = [corpus.setdefault(cell, f"s{len(corpus)}") for cell in cells]
        pairs.append((ids[0], ids[-1]))
    return retrieval_set(name or path.name.partition(".")[0], {key: text for text, key in corpus.items()}, pairs)


def read_askubuntu(texts: str | Path, lists: Sequence[str | Path], name: str = "askubuntu") -> RetrievalSet:
    """A set of AskUbuntu in the form of Lei et al. (NAACL 2016; taolei87/askubuntu).

    Candidates are the titles of all questions that the lists name; questions with the same title are one.

    Args:
        texts: `text_tokenized.txt.gz`, rows `id TAB title TAB body`.
        lists: such as `dev.txt` and `test.txt`, rows `id TAB ids of similar questions [TAB ids of others ...]`, the
            ids of a cell between spaces; cells behind the third, such as scores, mean nothing here.
        name: of the set.

    Raises:
        EvaluationError: no question has a similar one.
        TextError: a file cannot be read, or (with its number) a row has too few columns or an id without a title.
    """
    titles = {cells[0]: cells[1] for _, cells in cells_of(Path(texts), 2, 3)}
    first, corpus, pairs = dict[str, str](), dict[str, str](), []
    for path in map(Path, lists):
        for number, ids, similar in _list_rows(path):
            if (absent := next((key for key in ids if not titles.get(key, "").strip()), None)) is not None:
                raise TextError(f"{path}: row {number}: no title of question {short(absent)} in {texts}; complete it")
            same = [first.setdefault(titles[key], key) for key in ids]
            corpus |= {key: titles[key] for key in same}
            pairs += [(same[0], other) for other in same[1 : 1 + similar]]
    return retrieval_set(name, corpus, pairs)


def _list_rows(path: Path) -> Iterator[tuple[int, list[str], int]]:
    """Yield number, ids (the question's own, similar ones, others) and how many are similar."""
    for number, cells in cells_of(path, 2, 4):
        similar = cells[1].split()
        yield number, [cells[0], *similar, *(cells[2].split() if len(cells) > 2 else ())], len(similar)
