"""Recognize published test sets, so that no training is watched with one by mistake.

The file `known_test_sets.json` next to this one holds hashes of pairs and no text: of each test set the 64 smallest
(a bottom-k sketch: a random sample of the set, and the same one whatever the order of the rows), of each development
set all. `data_prep/make_known_test_sets.py` makes it.
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

# The development sets share pairs with test sets: STS Benchmark dev has 9-18 % of eight sets of 2012-2016 and the whole
# of STS 2015 answers-forums. So sketches leave out pairs of development sets (unless most of a test set is such), one
# that is there in full is set aside, and pairs drawn from one are refused only if half are of one test set. A third of
# a test set is far above the 0-1 % of it left in development sets, and low enough to catch a test set cut down.
_DEVELOPMENT_SHARE = 0.75
_TEST_SHARE = 1 / 3
_DRAWN_SHARE = 1 / 2
_FEWEST_HITS = 3  # of a sketch: fewer are chance


@dataclass(frozen=True)
class KnownTestSet:
    """A test set by the smallest hashes of its pairs, the `SKETCH_SIZE` smallest, or all where it has fewer pairs.

    `share` is the part of it, 0 .. 1, that was found among pairs, by estimate.
    """

    name: str
    pairs: int
    hashes: frozenset[int]
    share: float = 0.0


def pair_hashes(first: Iterable[str], second: Iterable[str]) -> set[int]:
    """Hashes of pairs, 64 bits each: BLAKE2b of both sentences, whichever comes first.

    Letters and digits alone count (NFKC, case folded), so that neither tokenization nor quotes hide a pair.
    """
    pairs = zip(map(normalized_key, first), map(normalized_key, second), strict=True)
    digests = (hashlib.blake2b("\n".join(sorted(pair)).encode(), digest_size=8).digest() for pair in pairs)
    return {int.from_bytes(digest, "big") for digest in digests}


def sketch(name: str, pairs: set[int], development: Collection[int] = ()) -> KnownTestSet:
    """Sketch a test set, from its `pair_hashes` without those of development sets, unless most of it are such."""
    rest = pairs.difference(development)
    kept = rest if len(rest) > len(pairs) / 2 else pairs
    return KnownTestSet(name, len(pairs), frozenset(sorted(kept)[:SKETCH_SIZE]))


def known_test_set_in(first: Iterable[str], second: Iterable[str]) -> KnownTestSet | None:
    """The test set that pairs hold in substantial part, or that they are a part of; the one with most pairs there.

    STS Benchmark dev and STS 2017 en-en are development sets and pass, as do parts of them.
    """
    hashes = pair_hashes(first, second)
    tests, developments = _known()
    drawn = any(len(hashes & development) >= _DEVELOPMENT_SHARE * len(hashes) for development in developments)
    for development in developments:
        if len(hashes & development) >= _DEVELOPMENT_SHARE * len(development):
            hashes -= development
    matches = []
    for test in tests:
        found = len(test.hashes & hashes)
        if found < min(_FEWEST_HITS, len(test.hashes)):
            continue
        highest = max(test.hashes) if len(test.hashes) == SKETCH_SIZE else 2**64
        share, of_pairs = found / len(test.hashes), found / sum(value <= highest for value in hashes)
        if of_pairs >= _DRAWN_SHARE or (not drawn and max(share, of_pairs) >= _TEST_SHARE):
            matches.append(replace(test, share=share))
    return max(matches, key=lambda match: match.share * match.pairs, default=None)


def write_known_test_sets(tests: Iterable[KnownTestSet], developments: dict[str, set[int]], path: Path) -> None:
    """Write the file of hashes, one set per row, whole or not at all; `developments` are names and all hashes."""
    rows = [{"test": test.name, "pairs": test.pairs, "hashes": _packed(test.hashes)} for test in tests]
    rows += [{"development": name, "hashes": _packed(hashes)} for name, hashes in developments.items()]
    write_text(path, "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


@cache
def _known(path: Path = KNOWN_TEST_SETS) -> tuple[list[KnownTestSet], list[set[int]]]:
    rows = read_json(path)
    tests = [KnownTestSet(r["test"], r["pairs"], frozenset(_unpacked(r["hashes"]))) for r in rows if "test" in r]
    return tests, [_unpacked(row["hashes"]) for row in rows if "development" in row]


def _packed(hashes: Collection[int]) -> str:
    return base64.b64encode(np.array(sorted(hashes), ">u8").tobytes()).decode()


def _unpacked(text: str) -> set[int]:
    return set(np.frombuffer(base64.b64decode(text), ">u8").tolist())
