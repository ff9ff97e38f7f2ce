"""Recognize published test sets by hashes of their sentences and pairs.

- The filter `test_sets` keeps sentences of test sets out of training data. Its hashes are in
  `known_test_sentences.bin`: a line for the format and a line of JSON, family -> number of hashes;
  then all hashes, 5 bytes of BLAKE2b of the letters, marks and digits of a sentence, big-endian and
  sorted within a family.
- `known_test_set_in` recognizes test sets that are used by mistake to choose a model during
  training. Its hashes are in `known_test_sets.json`: the 64 smallest hashes of pairs of each test
  set (a bottom-k sketch: a random sample that does not depend on the order of the rows), and all
  hashes of each development set.

data_prep/make_known_test_sets.py makes both files from public test sets.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import regex
from numpy.typing import NDArray
from pydantic import Field

from st_paragram.core.files import atomic, read_json, write_text
from st_paragram.core.settings import setting
from st_paragram.errors import EvaluationError, refused
from st_paragram.tools.cleaning.base import AnyOf, Row, RowFilter, options
from st_paragram.tools.cleaning.text import is_unsegmented, normalized_key

KNOWN_TEST_SENTENCES = Path(__file__).with_name("known_test_sentences.bin")
KNOWN_TEST_SETS = Path(__file__).with_name("known_test_sets.json")

# --- sentences

_HEADER = b"st_paragram test sentences 2\n"
_BYTES = 5  # of a hash
# Everyday sentences ("How old is he?") are in every collection of subtitles and prove nothing. So
# only sentences with at least this many words and letters count, or characters in a script without
# spaces. These are 98 % of the sentences of STS, 83 % of the English sentences of Tatoeba and 73 %
# of its other sentences.
_MINIMUM_WORDS = 4
_MINIMUM_LETTERS = 15
_MINIMUM_CHARACTERS = 8
_MARKS = regex.compile(r"\p{M}+")

Hashes = NDArray[np.uint64]


class SetFamily(str, Enum):
    """Families of test sets, including their development and training parts."""

    STS = "sts"
    TATOEBA = "tatoeba"
    RETRIEVAL = "retrieval"


#: Families that are dropped by default. Retrieval has questions and answers of SQuAD (dev), XQuAD-R
#: and Quora, and premises and hypotheses of SNLI (test) and XNLI (a fifth of dev), which are
#: dropped for models tested on them.
DEFAULT_FAMILIES = (SetFamily.STS, SetFamily.TATOEBA)


@options
class KnownTestSentences(RowFilter):
    """Drop pairs with a side that is a sentence of a test set, ignoring case and punctuation.

    Everyday sentences ("How old is he?") are kept.
    """

    name: ClassVar[str] = "test_sets"
    reasons: ClassVar[tuple[str, ...]] = ("test sentence",)

    sets: Annotated[AnyOf[SetFamily], Field(min_length=1)] = setting(
        DEFAULT_FAMILIES, "families of test sets"
    )

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "test sentence" for rows with a known sentence on either side."""
        known_sentences = KnownSentences(self.sets)
        first = known_sentences([row[0] for row in rows])
        second = known_sentences([row[1] for row in rows])
        reasons: list[str | None] = [None] * len(rows)
        for number in np.flatnonzero(first | second).tolist():
            reasons[number] = self.reasons[0]
        return reasons

    def identity(self) -> dict[str, Any]:
        """Return the families of test sets, and a digest of the known sentences."""
        families = [family.value for family in self.sets]
        return {"sets": families, "known": KnownSentences(self.sets).identity}


class KnownSentences:
    """Sentences of families of test sets, as hashes.

    Attributes:
        name: Describes the families.
    """

    def __init__(self, families: Sequence[SetFamily] = tuple(SetFamily)) -> None:
        """Read the hashes, by default of all families, including retrieval."""
        names = ", ".join(family.value for family in families)
        self.name = f"test sets ({names})"
        self._hashes = _hashes_of(tuple(families))

    @cached_property
    def identity(self) -> str:
        """A digest of the sentences."""
        return f"{self.name} {hashlib.sha256(self._hashes.tobytes()).hexdigest()}"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return which of n texts have the letters, marks and digits of a test sentence, (n,)."""
        hashes = sentence_hashes(texts)
        places = np.searchsorted(self._hashes, hashes)
        return self._hashes[np.minimum(places, len(self._hashes) - 1)] == hashes


def sentence_hashes(sentences: Iterable[str]) -> Hashes:
    """Hash the letters, marks and digits of n sentences: uint64 (n,), of which 40 bits are used."""
    digests = bytearray()
    empty = hashlib.blake2b(digest_size=_BYTES)
    for sentence in sentences:
        hasher = empty.copy()
        hasher.update(normalized_key(sentence).encode("utf-8", "surrogatepass"))
        digests += hasher.digest()
    return _widened(digests)


def _widened(digests: bytes | bytearray) -> Hashes:
    """Return hashes of 5 bytes as uint64."""
    wide = np.zeros((len(digests) // _BYTES, 8), np.uint8)
    wide[:, -_BYTES:] = np.frombuffer(digests, np.uint8).reshape(-1, _BYTES)
    return wide.view(">u8").astype(np.uint64).ravel()


def is_distinctive(sentence: str) -> bool:
    """Whether a sentence is long enough to be distinctive, unlike everyday sentences."""
    letters = len(_MARKS.sub("", normalized_key(sentence)))
    if is_unsegmented(sentence):
        return letters >= _MINIMUM_CHARACTERS
    return len(sentence.split()) >= _MINIMUM_WORDS and letters >= _MINIMUM_LETTERS


def write_known_sentences(
    sentences: Mapping[SetFamily, Iterable[str]], path: Path = KNOWN_TEST_SENTENCES
) -> int:
    """Write the file, without everyday sentences; return the number of hashes."""
    counts = {}
    content = bytearray()
    for family, texts in sentences.items():
        hashes = np.unique(sentence_hashes(text for text in texts if is_distinctive(text)))
        counts[family.value] = len(hashes)
        wide = hashes.astype(">u8").view(np.uint8).reshape(-1, 8)
        content += wide[:, -_BYTES:].tobytes()
    with atomic(path) as file:
        file.write(_HEADER + json.dumps(counts).encode() + b"\n" + content)
    return sum(counts.values())


@cache
def _hashes_of(families: tuple[SetFamily, ...], path: Path = KNOWN_TEST_SENTENCES) -> Hashes:
    """Return the sorted hashes of some families in a file."""
    with refused(EvaluationError, path, "not readable", "install st_paragram again"):
        line, _, content = path.read_bytes().removeprefix(_HEADER).partition(b"\n")
        hashes = _widened(content)
        parts = []
        start = 0
        for name, count in json.loads(line).items():
            if name in families:
                parts.append(hashes[start : start + count])
            start += count
        if start != len(hashes):
            raise ValueError(f"{len(hashes)} hashes, not {start}")
        return np.unique(np.concatenate(parts))


# --- sets of pairs

SKETCH_SIZE = 64

# Development sets share pairs with test sets: STS Benchmark dev has 9-18% of eight sets of
# 2012-2016, and all of STS 2015 answers-forums. So sketches omit pairs of development sets (unless
# most of a test set is in them), a complete development set is ignored, and a sample from one is
# refused only if half of it is from one test set. A third of a test set is far above the 0-1% that
# remain in development sets, and low enough to catch a shortened test set.
_DEVELOPMENT_SHARE = 0.75
_TEST_SHARE = 1 / 3
_SAMPLE_SHARE = 1 / 2
_MINIMUM_HITS = 3  # matches with a sketch: fewer may be chance


@dataclass(frozen=True)
class KnownTestSet:
    """A test set, described by the smallest hashes of its pairs."""

    name: str
    pairs: int
    hashes: frozenset[int]  # `SKETCH_SIZE`, or all if it has fewer pairs
    share: float = 0.0  # estimated share of the test set, 0 .. 1, in the pairs that were checked


@dataclass(frozen=True)
class KnownSets:
    """The content of `known_test_sets.json`."""

    tests: list[KnownTestSet]
    developments: list[set[int]]  # all hashes of each set


def pair_hashes(first: Iterable[str], second: Iterable[str]) -> set[int]:
    """Return 64-bit hashes of pairs: BLAKE2b of the two sentences, in either order.

    Only letters, marks and digits count (NFKC, case-folded), so that neither tokenization nor
    quotation marks hide a pair.
    """
    hashes = set()
    for pair in zip(first, second, strict=True):
        keys = sorted([normalized_key(sentence) for sentence in pair])
        digest = hashlib.blake2b("\n".join(keys).encode(), digest_size=8).digest()
        hashes.add(int.from_bytes(digest, "big"))
    return hashes


def sketch(name: str, pairs: set[int], development: Collection[int] = ()) -> KnownTestSet:
    """Sketch a test set from its `pair_hashes`.

    Pairs of development sets are omitted, unless these are half or more.
    """
    rest = pairs.difference(development)
    sampled = rest if len(rest) > len(pairs) / 2 else pairs
    return KnownTestSet(name, len(pairs), frozenset(sorted(sampled)[:SKETCH_SIZE]))


def known_test_set_in(first: Iterable[str], second: Iterable[str]) -> KnownTestSet | None:
    """Return the test set of which the pairs contain a large part, or are a part.

    If there are several, it is the largest overlap. STS Benchmark dev and STS 2017 en-en are
    development sets, so they and parts of them are accepted (None).
    """
    hashes = pair_hashes(first, second)
    known_sets = _known_sets()
    is_sample = False  # of a development set
    complete: set[int] = set()
    for development in known_sets.developments:
        shared = len(hashes & development)
        if shared >= _DEVELOPMENT_SHARE * len(hashes):
            is_sample = True
        if shared >= _DEVELOPMENT_SHARE * len(development):
            complete |= development
    matches = list(_matches(hashes - complete, known_sets.tests, is_sample))
    return max(matches, key=lambda match: match.share * match.pairs, default=None)


def _matches(
    hashes: set[int], tests: Iterable[KnownTestSet], is_sample: bool
) -> Iterator[KnownTestSet]:
    """Yield the test sets in some pairs, with their shares.

    Args:
        hashes: Hashes of the pairs.
        tests: Known test sets.
        is_sample: Whether the pairs are from a development set.
    """
    for test in tests:
        hits = len(test.hashes & hashes)
        if hits < min(_MINIMUM_HITS, len(test.hashes)):
            continue
        highest = max(test.hashes) if len(test.hashes) == SKETCH_SIZE else 2**64
        sampled = [value for value in hashes if value <= highest]
        share = hits / len(test.hashes)
        share_of_pairs = hits / len(sampled)
        is_part = share_of_pairs >= _SAMPLE_SHARE
        if is_part or (not is_sample and max(share, share_of_pairs) >= _TEST_SHARE):
            yield replace(test, share=share)


def write_known_test_sets(
    tests: Iterable[KnownTestSet], developments: Mapping[str, set[int]], path: Path
) -> None:
    """Write the file of hashes atomically, one set per row.

    Args:
        tests: Test sets.
        developments: Name -> all hashes of a development set.
        path: File to write.
    """
    rows = []
    for test in tests:
        row = {"test": test.name, "pairs": test.pairs, "hashes": _packed(test.hashes)}
        rows.append(json.dumps(row))
    for name, hashes in developments.items():
        rows.append(json.dumps({"development": name, "hashes": _packed(hashes)}))
    write_text(path, "[\n" + ",\n".join(rows) + "\n]\n")


@cache
def _known_sets(path: Path = KNOWN_TEST_SETS) -> KnownSets:
    known_sets = KnownSets([], [])
    for row in read_json(path):
        hashes = _unpacked(row["hashes"])
        if "test" in row:
            test = KnownTestSet(row["test"], row["pairs"], frozenset(hashes))
            known_sets.tests.append(test)
        else:
            known_sets.developments.append(hashes)
    return known_sets


def _packed(hashes: Collection[int]) -> str:
    return base64.b64encode(np.array(sorted(hashes), ">u8").tobytes()).decode()


def _unpacked(text: str) -> set[int]:
    return set(np.frombuffer(base64.b64decode(text), ">u8").tolist())
