"""Recognize published test sets by a digest of their content, whatever their files are called.

A digest is the sum of 64-bit hashes of the rows, so that their order does not matter. Case,
punctuation and spaces do not count, so that the tokenized, lower-cased files of SentEval have the
digests of the original files. `known_sets.yaml` has the digests of test sets with published
figures; data_prep/make_known_test_sets.py writes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import yaml

from st_paragram.tools.cleaning.text import normalized_key
from st_paragram.tools.evaluation.files import GradedPairs, Translations

KNOWN_SETS = Path(__file__).with_name("known_sets.yaml")


@cache
def known_digests() -> dict[str, dict[str, str]]:
    """Return benchmark -> name of a set -> its digest."""
    digests: dict[str, dict[str, str]] = yaml.load(
        KNOWN_SETS.read_text(encoding="utf-8"), yaml.BaseLoader
    )
    return digests


def name_of_graded(pairs: GradedPairs) -> str:
    """Return the key of a published set of STS, such as "2012/MSRpar"; empty for other pairs."""
    found = graded_digest(pairs)
    for name, digest in known_digests()["sts"].items():
        if digest == found:
            return name
    return ""


def are_published(benchmark: str, pairs: Translations) -> bool:
    """Whether translations are the published test set of their benchmark and language."""
    published_digest = known_digests()[benchmark].get(pairs.name)
    return published_digest == translations_digest(pairs)


def graded_digest(pairs: GradedPairs) -> str:
    """Return the digest of graded pairs; the order of the two sentences does not matter."""
    return _digest(_graded_rows(pairs))


def translations_digest(pairs: Translations) -> str:
    """Return the digest of sentences with their translations."""
    return _digest(zip(pairs.first, pairs.second, strict=True))


def _graded_rows(pairs: GradedPairs) -> Iterator[list[str]]:
    for grade, *sentences in zip(pairs.grades, pairs.first, pairs.second, strict=True):
        keys = sorted(normalized_key(sentence) for sentence in sentences)
        yield [f"{grade:.3f}", *keys]


def _digest(rows: Iterable[Sequence[str]]) -> str:
    total = 0
    for row in rows:
        keys = "\n".join(normalized_key(cell) for cell in row)
        row_hash = hashlib.blake2b(keys.encode("utf-8", "surrogatepass"), digest_size=8)
        total += int.from_bytes(row_hash.digest(), "big")
    return f"{total % 2**64:016x}"
