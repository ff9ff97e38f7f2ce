"""Lists of pairs of documents, checked before any work is done."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from st_paragram.core.files import atomic, digest, file_digest, folder_for_file, is_pipe
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import MiningError, ParagramError
from st_paragram.tools.alignment.alignment import check_size


@dataclass(frozen=True)
class DocumentPair:
    """Two documents that say the same, one sentence per line.

    Attributes:
        source: A file, plain or compressed.
        target: A file.
        where: Where they were named, for messages: file and row of a list.
    """

    source: str
    target: str
    where: str = ""

    def error(self, message: object) -> MiningError:
        """An error that says which documents it is about."""
        return MiningError(f"{self.where}: {message}" if self.where else str(message))


def read_list(path: str) -> Iterator[DocumentPair]:
    """Yield the pairs of a list of rows `source file TAB target file`; blank rows are passed over.

    Args:
        path: The list; the files it names are meant from its folder.

    Raises:
        TextError: The list cannot be read.
        MiningError: A row has not two columns, or there is none.
    """
    if wrong := folder_for_file(path):
        raise MiningError(f"{wrong}; name the list of documents")
    if is_pipe(path):
        raise MiningError(f"{path}: no regular file; write the list of documents to a file")
    folder, empty = Path(path).parent, True
    for row, line in enumerate(read_lines(path), 1):
        columns = [column.strip() for column in line.split("\t")]
        if columns == [""]:
            continue
        if len(columns) != 2 or not all(columns):
            seen = f"row {row} is {line[:60]!r}"
            raise MiningError(f"{path}: {seen}; write `source file TAB target file`, two names and a tab")
        empty = False
        source, target = (str(folder / column) for column in columns)
        yield DocumentPair(source, target, f"{path}, row {row}")
    if empty:
        raise MiningError(f"{path}: no documents; write a row `source file TAB target file` for each pair")


def read_document(path: str) -> list[str]:
    """The lines of a document, with single spaces; blank ones are empty.

    Raises:
        TextError: As `read_lines`.
    """
    return [" ".join(line.split()) for line in read_lines(path)]


def check_pairs(pairs: Sequence[DocumentPair], ordered: bool) -> tuple[int, int]:
    """Read all documents once and refuse what could not be worked on.

    Args:
        pairs: The documents.
        ordered: They are to be aligned, which limits their size.

    Returns:
        Sentences, blank lines apart, of all source documents and of all target documents.

    Raises:
        MiningError: A document is missing, cannot be read, is empty, or too large; the message names it.
    """
    sizes: dict[str, int] = {}
    totals = [0, 0]
    for pair in pairs:
        for side, path in enumerate((pair.source, pair.target)):
            if path not in sizes:
                sizes[path] = _count(path, pair)
            totals[side] += sizes[path]
        if ordered:
            try:
                check_size(sizes[pair.source], sizes[pair.target])
            except MiningError as error:
                raise pair.error(f"{pair.source} and {pair.target}: {error}") from error
    return totals[0], totals[1]


def _count(path: str, pair: DocumentPair) -> int:
    if wrong := folder_for_file(path):
        raise pair.error(f"{wrong}; name a document")
    if is_pipe(path):
        raise pair.error(f"{path}: no regular file; write the document to a file")
    try:
        count = sum(1 for line in read_lines(path) if line.strip())
    except ParagramError as error:
        raise pair.error(error) from error
    if not count:
        raise pair.error(f"{path}: empty; give a document of at least one sentence, or leave the pair out")
    return count


def write_plan(pairs: Iterable[DocumentPair], folder: Path) -> Path:
    """Write down pairs, each with what identifies it, for all processes that work on them.

    Args:
        pairs: The documents.
        folder: Of the work.

    Returns:
        The file, named by its contents.
    """
    digests: dict[str, str] = {}
    rows = []
    for pair in pairs:
        paths = [str(Path(name).absolute()) for name in (pair.source, pair.target)]
        keys = [digests.get(path) or digests.setdefault(path, file_digest(path)) for path in paths]
        rows.append([*paths, pair.where, digest(*keys)])
    plan = folder / "plan" / digest(rows) / "pairs.json"
    with atomic(plan) as handle:
        handle.write(json.dumps(rows).encode())
    return plan


@lru_cache(maxsize=2)
def read_plan(path: Path) -> Sequence[tuple[DocumentPair, str]]:
    """Pairs, and what identifies each. A plan never changes: its name is its contents'."""
    return [(DocumentPair(source, target, where), key) for source, target, where, key in json.loads(path.read_bytes())]
