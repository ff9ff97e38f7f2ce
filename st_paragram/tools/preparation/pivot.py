"""Paraphrases out of bitext: English sentences that have the same translation, from files larger than memory.

Rows are scattered to bucket files by a hash of their translation, so that all sentences of a translation are in one
bucket, and a bucket at a time is grouped in memory. The pairs are scattered the same way by their own hash, which
brings repeated ones together and shuffles them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from st_paragram.core.files import output_files, temporary_folder
from st_paragram.core.text.parallel import ReadCounts, TextSource, parse_source, read_pairs
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.preparation.pivot_pairs import PivotReport, PivotSettings, pivot_pairs

_PREFIX = re.compile(r"([A-Za-z_]+)-([A-Za-z_]+):.")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_KEY_BYTES = 16


def pivot_source(spec: str, language: str = "en") -> TextSource:
    """Read `LANG-LANG:FILE` (see `text.parse_source`), one of its languages being the one to find paraphrases in.

    Raises:
        SettingsError: There is no prefix, or neither language is the wanted one.
    """
    match = _PREFIX.match(spec)
    if match is None or language not in match.groups():
        raise SettingsError(
            f"{spec}: name the languages of the columns, {language} among them, as in {language}-de:FILE"
        )
    first, second = match.groups()
    return parse_source(spec, (language, second if first == language else first))


def pivot(
    sources: Sequence[TextSource],
    output: str | Path,
    settings: PivotSettings | None = None,
    drop_invalid: bool = False,
    buckets: int = 256,
) -> PivotReport:
    """Write the pairs of sentences of the first language that share a translation, two columns with a tab between.

    Translations are compared in compatibility form (NFKC), case folded, with single spaces, and within a language.
    The pairs come in random order; they and their order depend on the set of rows and the settings alone. Temporary
    files (less than the text, uncompressed) are in a hidden folder next to the output and are removed at the end,
    whatever it is; the output takes its name only when it is complete.

    Args:
        sources: Bitexts, see `pivot_source`.
        output: The file to make; one that exists is replaced.
        settings: Which sentences make pairs.
        drop_invalid: Leave out rows that are not UTF-8 or have a wrong number of columns instead of refusing the text.
        buckets: Files to scatter rows to, all open at once; memory is a few times the largest.

    Returns:
        The numbers.

    Raises:
        TextError: A text cannot be read, or no two sentences share a translation.
        SettingsError: No text, or no bucket.
        ParagramError: The output cannot be written, or another run is writing it.
    """
    settings = settings or PivotSettings()
    if not sources or not 1 <= buckets <= 256:
        raise SettingsError(f"{len(sources)} texts and {buckets} buckets; give at least one text and 1 to 256 buckets")
    output, report = Path(output), PivotReport()
    with output_files(output, overwrite=True), temporary_folder(output) as folder:
        rows = (row for source in sources for row in _rows(source, settings, report, drop_invalid))
        grouped = (group for path in _scatter(rows, folder, "rows", buckets) for group in _groups(path))
        made = ((_key(a, b), f"{a}\t{b}") for a, b in pivot_pairs(grouped, settings, report))
        paths = _scatter(made, folder, "pairs", buckets)
        written, part = 0, folder / "output"
        with part.open("wb") as file:
            for path in paths:
                lines = [line for _, group in _groups(path) for line in dict.fromkeys(group)]
                file.writelines(f"{line}\n".encode("utf-8", "surrogatepass") for line in lines)
                written += len(lines)
        report.pairs, report.repeated = written, report.pairs - written
        if not written:
            names = ", ".join(source.name for source in sources[:3])
            raise TextError(
                f"{names}: no two of {report.rows:,} rows share a translation; give more text, or other limits"
            )
        part.replace(output)
    return report


def _rows(
    source: TextSource, settings: PivotSettings, report: PivotReport, drop_invalid: bool
) -> Iterator[tuple[bytes, str]]:
    """Key of the translation, and the sentence, of each row that is long enough."""
    counts = ReadCounts()
    other = source.languages[0 if source.swapped else 1]
    for first, second in read_pairs(source, counts, drop_invalid):
        words = first.split()
        translation = " ".join(unicodedata.normalize("NFKC", second).casefold().split())
        report.rows += 1
        if len(words) < settings.min_words:
            report.short += 1
        elif _letters(translation) < settings.min_pivot_letters:
            report.short_pivots += 1
        else:
            yield _key(other, translation), " ".join(words)
    report.bad_rows += counts.nul_rows + counts.invalid_rows + counts.wrong_columns


def _letters(text: str) -> int:
    """Characters other than spaces, a Han character as 3, which is about what it says in letters."""
    return len(text) - text.count(" ") + (0 if text.isascii() else 2 * len(_HAN.findall(text)))


def _key(*texts: str) -> bytes:
    return blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def _scatter(rows: Iterable[tuple[bytes, str]], folder: Path, name: str, buckets: int) -> list[Path]:
    r"""Write rows `key in hexadecimal, text\n` to bucket files by the first byte of the key; the files, in order."""
    paths = [folder / f"{name}.{number}" for number in range(buckets)]
    with ExitStack() as stack:
        files: list[BinaryIO] = [stack.enter_context(path.open("wb")) for path in paths]
        for key, text in rows:
            files[key[0] * buckets >> 8].write(f"{key.hex()}{text}\n".encode("utf-8", "surrogatepass"))
    return paths


def _groups(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Texts of a bucket by their keys, which come in their order; the file is removed."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    with path.open("rb") as file:
        for line in file:
            text = line[:-1].decode("utf-8", "surrogatepass")
            groups[text[: 2 * _KEY_BYTES]].append(text[2 * _KEY_BYTES :])
    path.unlink()
    yield from sorted(groups.items())
