"""Read the files of the BUCC 2018 shared task: texts `id TAB sentence`, and gold `id TAB id`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import TextError
from st_paragram.tools.evaluation.base import inner_folder

BUCC_PAIRS = ("de-en", "fr-en", "ru-en", "zh-en")


@dataclass(frozen=True)
class ComparableTexts:
    """Two texts in which some sentences translate each other.

    Args:
        name: of the pair of files, e.g. "zh-en.sample".
        source_ids: n unique ids.
        source: n sentences.
        target_ids: m unique ids.
        target: m sentences.
        gold: rows of source and target that translate each other, int64 (g, 2), every pair once.
    """

    name: str
    source_ids: list[str]
    source: list[str]
    target_ids: list[str]
    target: list[str]
    gold: NDArray[np.int64]


def bucc_pairs(folder: str | Path) -> list[str]:
    """Pairs of languages of which a folder of BUCC's files has texts and gold."""
    return [pair for pair in BUCC_PAIRS if _prefix(Path(folder), pair) is not None]


def read_bucc_pairs(data: str | Path, pairs: Sequence[str] = ()) -> dict[str, ComparableTexts]:
    """Read the texts of a folder of evaluation data: pair of languages -> texts.

    Args:
        data: the folder, whose folder `bucc2018` is taken if there is one.
        pairs: of languages; all that there are if empty.

    Raises:
        TextError: as `bucc_prefix` and `read_bucc`, or there are no files of BUCC.
    """
    folder = inner_folder(data, "bucc2018")
    wanted = dict.fromkeys(pairs or bucc_pairs(folder))
    if not wanted:
        raise TextError(f"{folder}: no files of BUCC 2018; they are named like zh-en.sample.zh, .en and .gold")
    return {pair: read_bucc(bucc_prefix(folder, pair), pair) for pair in wanted}


def bucc_prefix(data: str | Path, pair: str) -> Path:
    """Where the files of a pair are: a prefix as it is, or a folder's test, sample or training set, the first there.

    Args:
        data: a folder with `zh-en.sample.zh`, `.en` and `.gold` (or with a folder `zh-en` of these), or a prefix like
            `bucc2018/zh-en.sample`.
        pair: codes of the two languages, e.g. "zh-en".

    Raises:
        TextError: the files are not there; the message names what was looked for.
    """
    data = Path(data)
    if not data.is_dir():
        return data
    if (found := _prefix(data, pair)) is not None:
        return found
    raise TextError(f"{data}: no {pair}.test.gold, {pair}.sample.gold or {pair}.training.gold; name a prefix of files")


def _prefix(data: Path, pair: str) -> Path | None:
    places = (folder / f"{pair}.{part}" for folder in (data, data / pair) for part in ("test", "sample", "training"))
    return next((place for place in places if Path(f"{place}.gold").is_file()), None)


def read_bucc(prefix: str | Path, pair: str) -> ComparableTexts:
    """Read and check the files PREFIX.zh, PREFIX.en and PREFIX.gold.

    Args:
        prefix: of the files.
        pair: codes of the two languages, e.g. "zh-en": the first column of the gold is the first language.

    Raises:
        TextError: a file is missing, empty or not UTF-8, or a row (named by file and number) has not two columns, an
            empty sentence, an id seen before, an id of another language, or (gold) an unknown id, ids in the wrong
            order or a pair seen before.
    """
    first, _, second = pair.partition("-")
    if not (first and second):
        raise TextError(f"{pair}: not a pair of languages; give two codes like zh-en")
    source, target = (_read_text(Path(f"{prefix}.{language}"), language) for language in (first, second))
    rows = _read_gold(Path(f"{prefix}.gold"), source, target)
    name = Path(prefix).name
    return ComparableTexts(name, list(source), list(source.values()), list(target), list(target.values()), rows)


def _read_text(path: Path, language: str) -> dict[str, str]:
    """Id -> sentence, in the order of the file."""
    sentences: dict[str, str] = {}
    for number, (key, sentence) in _columns(path, "id TAB sentence"):
        where = f"{path}: row {number}"
        if not sentence.strip() or not key.strip():
            raise TextError(f"{where}: an empty {'sentence' if key.strip() else 'id'}; complete the row or take it out")
        if key in sentences:
            raise TextError(f"{where}: the id {key} was given before; ids must be unique")
        code = key.partition("-")[0]
        if "-" in key and code.isalpha() and code != language:
            raise TextError(f"{where}: the id {key} is of language {code}, not {language}; check --pair and the file")
        sentences[key] = sentence
    return sentences


def _read_gold(path: Path, source: dict[str, str], target: dict[str, str]) -> NDArray[np.int64]:
    source_rows, target_rows = ({key: row for row, key in enumerate(text)} for text in (source, target))
    pairs: dict[tuple[int, int], None] = {}
    for number, (first, second) in _columns(path, "id TAB id"):
        where = f"{path}: row {number}"
        if first in target_rows and second in source_rows:
            raise TextError(f"{where}: {first} TAB {second} is the wrong way round; the gold follows the pair's order")
        for key, rows in ((first, source_rows), (second, target_rows)):
            if key not in rows:
                raise TextError(f"{where}: the id {key} is not in the text; do the files belong together?")
        pair = source_rows[first], target_rows[second]
        if pair in pairs:
            raise TextError(f"{where}: the pair {first} TAB {second} was given before; take one out")
        pairs[pair] = None
    return np.array(list(pairs), dtype=np.int64)


def _columns(path: Path, form: str) -> Iterator[tuple[int, tuple[str, str]]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TextError(f"{path}: cannot be read ({error.strerror}); it must hold rows `{form}`") from error
    if not data:
        raise TextError(f"{path}: empty; it must hold rows `{form}`")
    for number, row in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1):
        try:
            cells = row.decode("utf-8").removesuffix("\r").split("\t")
        except UnicodeDecodeError as error:
            raise TextError(f"{path}: row {number}: not UTF-8 ({error.reason}); convert the file") from error
        if len(cells) != 2:
            raise TextError(f"{path}: row {number}: expected `{form}`, saw {len(cells)} columns: {cells[0][:40]!r}")
        yield number, (cells[0], cells[1])
