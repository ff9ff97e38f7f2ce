"""Alignment of any number of document pairs into one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.encoding.unit_embeddings import known_texts, unit_embeddings
from st_paragram.core.extras import installed_version
from st_paragram.core.files import atomic, digest, file_digest, is_pipe
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.core.model_directory.find import find
from st_paragram.core.outputs import check_output
from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.tables import PLAIN_ONLY, check_plain
from st_paragram.core.text.translation_files import pair_writer, tmx_languages
from st_paragram.errors import MiningError, ParagramError
from st_paragram.tools.alignment.align import Embed, align, check_size
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.work import make, work_folder


@dataclass(frozen=True)
class DocumentReport:
    """The counts of an alignment run."""

    documents: int  # pairs of documents
    source: int  # sentences in the source documents, without blank lines
    target: int  # sentences in the target documents
    pairs: int  # written pairs of sentences or joined sentences
    # sentences in which the model knows no token, in source and target documents; they are skipped
    unknown: int = 0


def read_list(path: str) -> list[tuple[str, str, str]]:
    """Read a list of rows `source file TAB target file`, with paths relative to the list.

    Returns:
        Source, target and place in the list of each pair of documents.
    """
    folder = Path(path).parent
    pairs = []
    for row, line in enumerate(read_lines(path), 1):
        columns = [column.strip() for column in line.split("\t")]
        if columns == [""]:
            continue
        if len(columns) != 2 or not all(columns):
            raise MiningError(
                f"{path}: row {row} is {line[:60]!r}; write `source file TAB target file`, two"
                " names and a tab"
            )
        source, target = columns
        pairs.append((str(folder / source), str(folder / target), f"{path}, row {row}: "))
    if not pairs:
        raise MiningError(
            f"{path}: no documents; write a row `source file TAB target file` for each pair"
        )
    return pairs


def align_documents(
    documents: Iterable[tuple[str, str, str]],
    output: str | Path,
    model: str | Path,
    settings: AlignmentSettings | None = None,
    overwrite: bool = False,
    languages: tuple[str, str] | None = None,
) -> DocumentReport:
    """Align pairs of documents, and write them to one file; an interrupted run is resumed.

    A document is plain or compressed text, one sentence per line. `documents` has source, target,
    and their place in the list, for messages (see `read_list`). The output has rows `score TAB
    source TAB target`, in document order. Two sentences of a block are joined by a space. All
    documents are checked before the first is aligned. A sentence in which the model knows no token
    is skipped like a sentence without a translation.
    """
    settings = settings or AlignmentSettings()
    languages = tmx_languages(output, languages)
    output = Path(output)
    check_output(output, overwrite)
    pairs = list(documents)
    source_count = 0
    target_count = 0
    for source, target, place in pairs:
        with _named(place):
            n = _sentence_count(source)
            m = _sentence_count(target)
            check_size(n, m)
        source_count += n
        target_count += m
    model_folder = find(model)
    encoder = load_encoder(model_folder)
    key = digest(
        installed_version(), fingerprint(model_folder), repr(settings), "without unknown sentences"
    )

    def embed(texts: Sequence[str]) -> Vectors:
        return unit_embeddings(encoder, texts).vectors

    count = 0
    unknown = 0
    with (
        work_folder(output, overwrite) as folder,
        atomic(output) as file,
        pair_writer(file, languages) as writer,
    ):
        for source, target, place in tqdm(
            pairs, desc="align", unit=" documents", disable=None, leave=False
        ):
            path = folder / f"{digest(key, file_digest(source), file_digest(target))}.tsv"
            with _named(place):
                make(path, partial(_align, source, target, embed, settings))
            for row in path.read_text("utf-8").split("\n")[:-1]:
                score, first, second = row.split("\t")
                count += bool(first and second)
                writer.write(first, second, float(score))
            unknown += _unknown(source, encoder) + _unknown(target, encoder)
    return DocumentReport(
        documents=len(pairs),
        source=source_count,
        target=target_count,
        pairs=count,
        unknown=unknown,
    )


def _align(source: str, target: str, embed: Embed, settings: AlignmentSettings, path: Path) -> None:
    """Write `score TAB source TAB target` for one pair of documents."""
    first = [" ".join(line.split()) for line in read_lines(source)]
    second = [" ".join(line.split()) for line in read_lines(target)]
    with path.open("wb") as file:
        for block in align(first, second, embed, settings):
            one = " ".join(first[row] for row in block.source)
            two = " ".join(second[row] for row in block.target)
            file.write(f"{block.score:.6f}\t{one}\t{two}\n".encode())


def _sentence_count(name: str) -> int:
    """Count the sentences of a document, without blank lines."""
    if is_pipe(name):
        raise MiningError(f"{name}: not a regular file; name a document")
    check_plain(name, PLAIN_ONLY)
    count = sum(1 for line in read_lines(name) if line.strip())
    if not count:
        raise MiningError(
            f"{name}: empty; give a document with at least one sentence, or leave the pair out"
        )
    return count


def _unknown(document: str, encoder: TextEncoder) -> int:
    """Count the sentences of a document in which the model knows no token."""
    sentences = [line for line in read_lines(document) if line.strip()]
    return len(sentences) - int(known_texts(encoder, sentences).sum())


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Add the place where the documents were named to errors."""
    try:
        yield
    except ParagramError as error:
        raise MiningError(f"{where}{error}") from error
