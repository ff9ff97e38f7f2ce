"""Recognize published test sets, so that none is used by mistake to choose a model during training.

The file `known_test_sets.json` in this folder holds hashes of pairs and no text: the 64 smallest
hashes of each test set (a bottom-k sketch: a random sample that does not depend on the order of the
rows), and all hashes of each development set. `data_prep/make_known_test_sets.py` creates it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from st_paragram.core.files import read_json, write_text
from st_paragram.tools.cleaning.text import normalized_key

SKETCH_SIZE = 64
KNOWN_TEST_SETS = Path(__file__).with_name("known_test_sets.json")

# Development sets share pairs with test sets: STS Benchmark dev has 9-18% of eight sets of
# 2012-2016, and all of STS 2015 answers-forums. So sketches omit pairs of development sets (unless
# most of a test set is in them), a complete development set is ignored, and a sample from one is
# refused only if half of it is from one test set. A third of a test set is far above the 0-1% that
# remain in development sets, and low enough to catch a shortened test set.
_DEVELOPMENT_SHARE = 0.75
_TEST_SHARE = 1 / 3
_DRAWN_SHARE = 1 / 2
_FEWEST_HITS = 3  # matches with a sketch: fewer may be chance


@dataclass(frozen=True)
class KnownTestSet:
    """A test set, described by the `SKETCH_SIZE` smallest hashes of its pairs, or by all if it has
    fewer pairs.

    `share` is the estimated share of the test set, 0 .. 1, in the pairs that were checked.
    """

    name: str
    pairs: int
    hashes: frozenset[int]
    share: float = 0.0


def pair_hashes(first: Iterable[str], second: Iterable[str]) -> set[int]:
    """Return 64-bit hashes of pairs: BLAKE2b of the two sentences, in either order.

    Only letters, marks and digits count (NFKC, case-folded), so that neither tokenization nor
    quotation marks hide a pair.
    """
    pairs = zip(map(normalized_key, first), map(normalized_key, second), strict=True)
    digests = (
        hashlib.blake2b("\n".join(sorted(pair)).encode(), digest_size=8).digest() for pair in pairs
    )
    return {int.from_bytes(digest, "big") for digest in digests}


def sketch(name: str, pairs: set[int], development: Collection[int] = ()) -> KnownTestSet:
    """Sketch a test set from its `pair_hashes`, without those of development sets unless these are
    half or more.
    """
    rest = pairs.difference(development)
    kept = rest if len(rest) > len(pairs) / 2 else pairs
    return KnownTestSet(name, len(pairs), frozenset(sorted(kept)[:SKETCH_SIZE]))


def known_test_set_in(first: Iterable[str], second: Iterable[str]) -> KnownTestSet | None:
    """Return the test set of which the pairs contain a large part, or are a part; if several, the
    largest overlap.

    STS Benchmark dev and STS 2017 en-en are development sets, so they and parts of them are
    accepted (None).
    """
    hashes = pair_hashes(first, second)
    tests, developments = _known()
    drawn = any(
        len(hashes & development) >= _DEVELOPMENT_SHARE * len(hashes)
        for development in developments
    )
    for development in developments:
        if len(hashes & development) >= _DEVELOPMENT_SHARE * len(development):
            hashes -= development
    matches = []
    for test in tests:
        hits = len(test.hashes & hashes)
        if hits < min(_FEWEST_HITS, len(test.hashes)):
            continue
        highest = max(test.hashes) if len(test.hashes) == SKETCH_SIZE else 2**64
        share, share_of_pairs = (
            hits / len(test.hashes),
            hits / sum(value <= highest for value in hashes),
        )
        if share_of_pairs >= _DRAWN_SHARE or (
            not drawn and max(share, share_of_pairs) >= _TEST_SHARE
        ):
            matches.append(replace(test, share=share))
    return max(matches, key=lambda match: match.share * match.pairs, default=None)


def write_known_test_sets(
    tests: Iterable[KnownTestSet], developments: dict[str, set[int]], path: Path
) -> None:
    """Write the file of hashes atomically, one set per row; `developments` maps names to all
    hashes.
    """
    rows = [
        {"test": test.name, "pairs": test.pairs, "hashes": _packed(test.hashes)} for test in tests
    ]
    rows += [
        {"development": name, "hashes": _packed(hashes)} for name, hashes in developments.items()
    ]
    write_text(path, "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


@cache
def _known(path: Path = KNOWN_TEST_SETS) -> tuple[list[KnownTestSet], list[set[int]]]:
    rows = read_json(path)
    tests = [
        KnownTestSet(r["test"], r["pairs"], frozenset(_unpacked(r["hashes"])))
        for r in rows
        if "test" in r
    ]
    return tests, [_unpacked(row["hashes"]) for row in rows if "development" in row]


def _packed(hashes: Collection[int]) -> str:
    return base64.b64encode(np.array(sorted(hashes), ">u8").tobytes()).decode()


def _unpacked(text: str) -> set[int]:
    return set(np.frombuffer(base64.b64decode(text), ">u8").tolist())
