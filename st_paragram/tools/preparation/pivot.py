"""Paraphrases and translations from bitext: sentences that share a translation.

The files may be larger than memory. Rows are distributed to bucket files by a hash of their
translation, so that all sentences with the same translation are in one bucket. The buckets are
grouped in memory one by one. The pairs are distributed in the same way by their hash, which brings
repeated pairs together and shuffles all pairs.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations, groupby, product
from pathlib import Path

from st_paragram.core.folders import temporary_folder
from st_paragram.core.languages import check_codes
from st_paragram.core.outputs import output_files
from st_paragram.core.settings import setting, settings
from st_paragram.core.text.parallel import ReadCounts, TextSource, parse_source, read_pairs
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.cleaning.text import normalized_key
from st_paragram.tools.preparation.buckets import KEY_DIGITS, Buckets, read_buckets

_PREFIX = re.compile(r"([A-Za-z_]+)-([A-Za-z_]+):.")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


@settings
class PivotSettings:
    """Settings for pairs of sentences that share a translation (the pivot)."""

    min_words: int = setting(3, "minimum words per sentence", ge=1)
    min_pivot_letters: int = setting(
        12, "minimum letters, digits and marks of a translation; a Han character counts as 3", ge=1
    )
    most_sentences: int = setting(
        20,
        "maximum different sentences per translation; a translation with more gives no pairs",
        ge=2,
    )
    most_pairs: int = setting(
        10, "maximum pairs per translation; extras are sampled at random", ge=1
    )
    seed: int = setting(
        0, "seed for sampling and for the order of the two sentences of a pair", ge=0
    )


@dataclass
class PivotReport:
    """Counts of a pivot run; `rows` is `short` plus `short_pivots` plus the rows of groups."""

    rows: int = 0
    bad_rows: int = 0  # not part of `rows`
    short: int = 0
    short_pivots: int = 0
    groups: int = 0  # distinct translations
    shared: int = 0  # translations of at least two sentences that differ in letters or digits
    sentences: int = 0  # sentences of shared translations
    too_general: int = 0  # shared translations left out because they have too many sentences
    not_drawn: int = 0  # pairs left out because their translation has too many pairs
    repeated: int = 0  # pairs left out because another translation gives the same pair
    pairs: int = 0  # written pairs

    def table(self) -> str:
        """Format the counts as plain text, one per line."""
        labels = {
            "rows": "rows read",
            "bad_rows": "rows not read: NUL byte, not UTF-8, wrong number of columns",
            "short": "rows left out: sentence too short",
            "short_pivots": "rows left out: translation too short",
            "groups": "translations",
            "shared": f"translations shared by {self.sentences:,} sentences",
            "too_general": "of these left out: too many sentences",
            "not_drawn": "pairs left out: too many for one translation",
            "repeated": "pairs left out: repeated",
            "pairs": "pairs written",
        }
        lines = [f"{getattr(self, name):>13,}  {label}" for name, label in labels.items()]
        return "\n".join(lines)


def pivot_source(spec: str, languages: Sequence[str] = ("en",)) -> TextSource:
    """Parse `LANG-LANG:FILE`, see `parse_source`, with one of `languages` and its translations."""
    check_codes((languages[0], languages[-1]))
    match = _PREFIX.match(spec)
    codes = list(match.groups()) if match else []
    known = [code for code in codes if code in languages]
    if len(known) != 1:
        wanted = " or ".join(languages)
        raise SettingsError(
            f"{spec}: name the languages of the columns, {wanted} and another, as in"
            f" {languages[0]}-xx:FILE"
        )
    codes.remove(known[0])
    check_codes((known[0], codes[0]))
    return parse_source(spec, (known[0], codes[0]))


def pivot(
    sources: Sequence[TextSource],
    output: str | Path,
    settings: PivotSettings | None = None,
    languages: Sequence[str] = ("en",),
    drop_invalid: bool = False,
    overwrite: bool = False,
) -> PivotReport:
    """Write pairs of sentences that share a translation, as two tab-separated columns.

    The sentences of a pair are in one language, paraphrases of each other, or in two languages. Two
    columns are in the order of the languages, and paraphrases in random order.

    Translations are compared in compatibility form (NFKC), case folded, with single spaces, and
    within a language. Sentences that differ only in case, spaces and punctuation count as one. The
    pairs are in random order; they and their order depend only on the set of rows and the settings.
    Temporary files (smaller than the text, uncompressed) are in a hidden folder next to the output,
    which takes its name only when it is complete.

    Args:
        sources: Bitexts, see `pivot_source`.
        output: Output file.
        settings: Settings of the extraction.
        languages: The language of the sentences, or two languages.
        drop_invalid: Leave out rows that are not UTF-8 or have a wrong number of columns instead of
            refusing the text.
        overwrite: Replace an existing output.
    """
    settings = settings or PivotSettings()
    output = Path(output)
    report = PivotReport()
    with output_files(output, overwrite=overwrite), temporary_folder(output) as folder:
        with Buckets(folder / "rows") as buckets:
            for source in sources:
                side = languages.index(source.pair[0])
                rows = _rows(source, settings, side=side, report=report, drop_invalid=drop_invalid)
                buckets.add(rows)
        with Buckets(folder / "pairs") as buckets:
            for key, sentences in _groups(folder / "rows"):
                sides = _sides(sentences, len(languages))
                pairs = _pairs(key, sides, settings=settings, report=report)
                buckets.add([_row(_key(*pair), "\t".join(pair)) for pair in pairs])
        part = folder / "output"
        with part.open("wb") as file:
            for _, equal_pairs in _groups(folder / "pairs"):
                file.write(f"{equal_pairs[0]}\n".encode("utf-8", "surrogatepass"))
                report.pairs += 1
                report.repeated += len(equal_pairs) - 1
        if not report.pairs:
            names = ", ".join(source.name for source in sources[:3])
            raise TextError(
                f"{names}: no two of {report.rows:,} rows share a translation;"
                " give more text, or other limits"
            )
        part.replace(output)
    return report


def _rows(
    source: TextSource,
    settings: PivotSettings,
    *,
    side: int,
    report: PivotReport,
    drop_invalid: bool,
) -> Iterator[bytes]:
    """Yield the key of the translation, the side and the sentence of each row that is long enough.

    The side is the index of the sentence's language.
    """
    counts = ReadCounts()
    other_language = source.pair[1]
    for first, second in read_pairs(source, counts, drop_invalid):
        words = first.split()
        translation = " ".join(unicodedata.normalize("NFKC", second).casefold().split())
        letters = len(translation) - translation.count(" ") + 2 * len(_HAN.findall(translation))
        report.rows += 1
        if len(words) < settings.min_words:
            report.short += 1
        elif letters < settings.min_pivot_letters:
            report.short_pivots += 1
        else:
            yield _row(_key(other_language, translation), f"{side}{' '.join(words)}")
    report.bad_rows += counts.nul_rows + counts.invalid_rows + counts.wrong_columns


def _sides(rows: Sequence[str], count: int) -> list[list[str]]:
    """Return the sentences of each side; of those that differ only in form, one remains."""
    sides: list[dict[str, str]] = [{} for _ in range(count)]
    for row in sorted(set(rows)):
        sentence = row[1:]
        sides[int(row[0])].setdefault(normalized_key(sentence), sentence)
    return [list(side.values()) for side in sides]


def _pairs(
    key: str, sides: Sequence[Sequence[str]], settings: PivotSettings, report: PivotReport
) -> Iterator[tuple[str, str]]:
    """Yield ordered pairs of the sentences of a translation, drawn at random by its key."""
    report.groups += 1
    is_paraphrase = len(sides) == 1
    sentences = sum(len(side) for side in sides)
    if not all(sides) or sentences < 2:
        return
    report.shared += 1
    report.sentences += sentences
    if sentences > settings.most_sentences:
        report.too_general += 1
        return
    pairs = list(combinations(sides[0], 2) if is_paraphrase else product(*sides))
    if len(pairs) > settings.most_pairs:
        report.not_drawn += len(pairs) - settings.most_pairs
        pairs = _random(settings.seed, key).sample(pairs, settings.most_pairs)
    for first, second in pairs:
        if is_paraphrase and _random(settings.seed, first, second).random() >= 0.5:
            yield second, first
        else:
            yield first, second


def _key(*texts: str) -> str:
    text = "\0".join(texts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=KEY_DIGITS // 2).hexdigest()


def _row(key: str, text: str) -> bytes:
    return f"{key}{text}\n".encode("utf-8", "surrogatepass")


def _groups(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield keys in order, with their texts."""
    for rows in read_buckets(folder):
        texts = (row[:-1].decode("utf-8", "surrogatepass") for row in rows)
        for key, group in groupby(texts, key=lambda text: text[:KEY_DIGITS]):
            yield key, [text[KEY_DIGITS:] for text in group]


def _random(seed: int, *texts: str) -> random.Random:
    key = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    return random.Random(blake2b(key, digest_size=8).digest())
