"""The rows of each text that a search works with, and those that are held out of it."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from st_paragram.core.files import digest, write_text
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_pairs
from st_paragram.errors import TextError
from st_paragram.mixing.development import Development, plain
from st_paragram.tools.corpora.mixture import MixtureSource
from st_paragram.tools.evaluation.translations import Translations
from st_paragram.tools.preparation.read_stage import text_digest

Pair = tuple[str, str]
VERSION = 1  # of samples: count it up when they change
_SHARE = 10  # at most one row in so many is held out


@dataclass(frozen=True)
class Sample:
    """Different rows of a text in random order.

    Attributes:
        source: The text.
        languages: Its pair, "en-es".
        path: A file of rows `english TAB other`.
        identity: What identifies its rows.
    """

    source: MixtureSource
    languages: str
    path: Path
    identity: str

    def pairs(self) -> Iterator[Pair]:
        """The rows."""
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                first, _, second = line[:-1].partition("\t")
                yield first, second


def draw(
    sources: Sequence[MixtureSource], languages: tuple[str, str], most: int, seed: int, folder: Path
) -> list[Sample]:
    """Draw rows of all texts; what is drawn follows from the rows alone, not from their order.

    Args:
        sources: The texts.
        languages: All of them.
        most: Rows of a text.
        seed: Of the draw.
        folder: For the files; those that are there already are not made again.

    Raises:
        TextError: A text cannot be read, or has fewer than two different rows.
    """
    samples = []
    for each in tqdm(sources, desc="reading", unit=" texts", disable=None, leave=False):
        limit = min(most, each.source.cap or most)
        identity = digest(VERSION, text_digest(each.source, drop_invalid=False), limit, seed)
        path = folder / f"{identity}.tsv"
        if not path.is_file():
            _write(path, _drawn(each.source, limit, seed))
        samples.append(Sample(each, "-".join(each.source.pair_among(languages)), path, identity))
    return samples


def hold_out(samples: Sequence[Sample], most: int, given: Development) -> Development:
    """Add to the sets that were given rows of the texts, for languages that have none.

    Args:
        samples: Of all texts.
        most: Pairs of a language; its texts share them equally, and none gives more than a tenth of its rows.
        given: The sets that were given.
    """
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.languages].append(sample)
    found = dict(given.translations)
    for languages in sorted(set(groups) - set(found)):
        pairs = dict[Pair, None]()
        for sample in groups[languages]:
            rows = sum(1 for _ in sample.pairs()) // _SHARE
            pairs |= dict.fromkeys(islice(sample.pairs(), min(rows, -(-most // len(groups[languages])))))
        if len(pairs) > 1 and most:
            found[languages] = Translations(languages, [one for one, _ in pairs], [other for _, other in pairs])
    return Development(given.graded, found)


def without_development(samples: Sequence[Sample], development: Development, folder: Path) -> list[Sample]:
    """The rows that share no text with the sets that models are scored on.

    Raises:
        TextError: Fewer than two rows are left of a text.
    """
    texts, identity = development.texts(), development.digest()
    left = []
    for sample in samples:
        name = digest(sample.identity, identity)
        path = folder / f"{name}.tsv"
        if not path.is_file():
            rows = [pair for pair in sample.pairs() if texts.isdisjoint(map(plain, pair))]
            if len(rows) < 2:
                seen = f"{sample.source.name}: {len(rows)} rows that are not in a development set"
                raise TextError(f"{seen}; give more text, or leave it out")
            _write(path, rows)
        left.append(Sample(sample.source, sample.languages, path, name))
    return left


def _drawn(source: TextSource, most: int, seed: int) -> list[Pair]:
    """The different rows whose hashes are smallest, in the order of hashes."""
    key, counts = seed.to_bytes(8, "little"), ReadCounts()

    def keyed() -> Iterator[tuple[bytes, Pair]]:
        for first, second in read_pairs(source, counts):
            pair = (" ".join(first.split()), " ".join(second.split()))
            if all(pair):
                yield blake2b("\t".join(pair).encode("utf-8", "replace"), digest_size=16, key=key).digest(), pair

    pairs = dict.fromkeys(pair for _, pair in heapq.nsmallest(most, keyed()))
    if len(pairs) < 2:
        raise TextError(f"{source.name}: {len(pairs)} different rows with two texts, at least 2 needed; give more text")
    return list(pairs)


def _write(path: Path, pairs: Sequence[Pair]) -> None:
    write_text(path, "".join(f"{first}\t{second}\n" for first, second in pairs))
