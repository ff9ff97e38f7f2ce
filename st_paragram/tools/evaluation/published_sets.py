"""Whether data are a published test set, so that published figures are shown only next to figures on the same data.

The file `published_test_sets.json` has a digest of each available set: of all its pairs, and of their grades if
there are any, in any order. Only letters and digits count, as in `known_test_sets`.
`data_prep/make_known_test_sets.py` makes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from st_paragram.core.files import read_json, write_json
from st_paragram.core.words import listed
from st_paragram.errors import EvaluationError, refused
from st_paragram.tools.cleaning.text import normalized_key

PUBLISHED_SETS = Path(__file__).with_name("published_test_sets.json")


def set_digest(first: Iterable[str], second: Iterable[str], grades: Iterable[float] | None = None) -> str:
    """The digest of a set of pairs: BLAKE2b, 64 bits, in hexadecimal.

    Raises:
        ValueError: the arguments differ in length.
    """
    sides = zip(map(normalized_key, first), map(normalized_key, second), strict=True)
    rows = ["\n".join(sorted(pair)) for pair in sides]
    if grades is not None:  # 3.8 is 3.799999952 at the hub
        rows = [f"{row}\n{grade:.2f}" for row, grade in zip(rows, grades, strict=True)]
    parts = sorted(hashlib.blake2b(row.encode(), digest_size=8).digest() for row in rows)
    return hashlib.blake2b(b"".join(parts), digest_size=8).hexdigest()


def is_published(
    name: str, first: Iterable[str], second: Iterable[str], grades: Iterable[float] | None = None
) -> bool | None:
    """Whether pairs are the published set of a name ("2012/MSRpar", "tatoeba/spa"); None if its digest is not known.

    Raises:
        EvaluationError: the file of digests cannot be read.
    """
    known = _known().get(name)
    return None if known is None else set_digest(first, second, grades) == known


def not_comparable(names: Sequence[str]) -> str:
    """The line that says why published figures are missing."""
    return f"Published figures are left out where the data are not the published test set: {listed(names)}."


def write_published_sets(digests: Mapping[str, str], path: Path = PUBLISHED_SETS) -> None:
    """Write the file of digests, name -> digest."""
    write_json(path, dict(digests))


@cache
def _known(path: Path = PUBLISHED_SETS) -> dict[str, str]:
    with refused(EvaluationError, path, "not readable", "install st_paragram again"):
        return {name: str(digest) for name, digest in read_json(path).items()}
