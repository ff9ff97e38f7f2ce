"""Alignment of any number of document pairs into one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.encoding.unit_embeddings import known_texts
from st_paragram.core.extras import installed_version, require
from st_paragram.core.files import atomic, digest, file_digest, is_pipe
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.core.model_directory.find import find
from st_paragram.core.outputs import check_output
from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.tables import PLAIN_ONLY, check_plain
from st_paragram.core.text.translation_files import pair_writer, tmx_languages
from st_paragram.errors import MiningError, ParagramError, SettingsError
from st_paragram.tools.alignment.align import align, paired_sections
from st_paragram.tools.alignment.settings import AlignmentSettings
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
    *,
    overwrite: bool = False,
    languages: tuple[str, str] | None = None,
    split: bool = False,
    indices: bool = False,
) -> DocumentReport:
    """Align pairs of documents, and write them to one file; an interrupted run is resumed.

    All documents are checked before the first is aligned. A sentence in which the model knows no
    token is skipped like a sentence without a translation.

    Args:
        documents: Source, target, and their place in the list, for messages (see `read_list`).
            Documents are plain or compressed text, one sentence per line.
        output: Output file with rows `score TAB source TAB target`, or TMX (`.tmx`), in document
            order. Sentences of a block are joined by a space.
        model: Directory, name or hub id of a model.
        settings: Alignment options.
        overwrite: Replace an existing output.
        languages: Languages of sources and targets, for `split` and TMX.
        split: Split lines into sentences.
        indices: Write numbers of sentences, from 0, joined by commas, instead of sentences.
    """
    settings = settings or AlignmentSettings()
    tmx_pair = tmx_languages(output, languages)
    if tmx_pair and indices:
        raise SettingsError(f"{output}: TMX has texts instead of indices; name a file .tsv")
    if split and not languages:
        raise SettingsError("--split needs the languages of both sides; give --pair CODE CODE")
    codes = languages if split and languages else ("", "")
    output = Path(output)
    check_output(output, overwrite)

    def read(*names: str) -> list[list[str]]:
        sides = zip(names, codes, strict=True)
        return [_sentences(name, settings.boundary, code) for name, code in sides]

    model_folder = find(model)
    encoder = load_encoder(model_folder)
    pairs = list(documents)
    counts = [0, 0]
    unknown = 0
    has_boundary = settings.boundary is None
    for source, target, place in pairs:
        with _named(place):
            first, second = read(source, target)
            paired_sections(first, second, settings.boundary)
        for side, sentences in enumerate([first, second]):
            has_boundary = has_boundary or settings.boundary in sentences
            texts = [text for text in sentences if text and text != settings.boundary]
            counts[side] += len(texts)
            unknown += len(texts) - int(known_texts(encoder, texts).sum())
    if not has_boundary:
        raise MiningError(
            f"no document has a line {settings.boundary!r}; correct it, or leave out --boundary"
        )
    key = digest(
        installed_version(),
        fingerprint(model_folder),
        repr((settings, codes, indices)),
    )

    def align_into(source: str, target: str, path: Path) -> None:
        first, second = read(source, target)
        with path.open("wb") as file:
            for block in align(first, second, encoder, settings=settings):
                sides = [_side(first, block.source, indices), _side(second, block.target, indices)]
                file.write("\t".join([f"{block.score:.6f}", *sides]).encode() + b"\n")

    count = 0
    with (
        work_folder(output, overwrite) as folder,
        atomic(output) as file,
        pair_writer(file, tmx_pair) as writer,
    ):
        for source, target, place in tqdm(
            pairs, desc="align", unit=" documents", disable=None, leave=False
        ):
            path = folder / f"{digest(key, file_digest(source), file_digest(target))}.tsv"
            with _named(place):
                make(path, partial(align_into, source, target))
            for row in path.read_text("utf-8").split("\n")[:-1]:
                score, source_text, target_text = row.split("\t")
                count += bool(source_text and target_text)
                writer.write(source_text, target_text, score=float(score))
    return DocumentReport(
        documents=len(pairs),
        source=counts[0],
        target=counts[1],
        pairs=count,
        unknown=unknown,
    )


def _sentences(name: str, boundary: str | None, language: str) -> list[str]:
    """Read a document: its lines, or the sentences of its lines, with single spaces."""
    if is_pipe(name):
        raise MiningError(f"{name}: not a regular file; name a document")
    check_plain(name, PLAIN_ONLY)
    sentences = [" ".join(line.split()) for line in read_lines(name)]
    if not set(sentences) - {"", boundary}:
        raise MiningError(
            f"{name}: empty; give a document with at least one sentence, or leave the pair out"
        )
    if not language:
        return sentences
    code = re.match("([a-z]{2,3})([-_]|$)", language.lower())
    if not code:
        raise MiningError(f"unknown language {language!r}; --split needs codes such as de or fr")
    segment = require("sentencex", "split", "--split").segment
    parts: list[str] = []
    for line in sentences:
        parts += [line] if line == boundary else map(str.strip, segment(code[1], line))
    return parts


def _side(document: Sequence[str], rows: Sequence[int], indices: bool) -> str:
    if indices:
        return ",".join(map(str, rows))
    return " ".join(document[row] for row in rows)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Add the place where the documents were named to errors."""
    try:
        yield
    except ParagramError as error:
        raise MiningError(f"{where}{error}") from error
