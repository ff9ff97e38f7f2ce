"""The filter `test_sets`: rows with a sentence of a test set. The package has a file with hashes of
these sentences.

The file begins with a line for the format and a line of JSON, family -> number of hashes. Then come
all hashes: 5 bytes of BLAKE2b of the letters, marks and digits of a sentence, big-endian and sorted
within a family. It was made from public test sets by data_prep/make_known_test_sets.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import regex
from numpy.typing import NDArray
from pydantic import Field

from st_paragram.core.files import atomic
from st_paragram.core.settings import setting
from st_paragram.errors import EvaluationError, refused
from st_paragram.tools.cleaning.base import AnyOf, Row, RowFilter, options
from st_paragram.tools.cleaning.text import is_unsegmented, normalized_key

KNOWN_TEST_SENTENCES = Path(__file__).with_name("known_test_sentences.bin")

_HEADER, _BYTES = b"st_paragram test sentences 2\n", 5
# Everyday sentences ("How old is he?") are in every collection of subtitles and prove nothing. So
# only sentences with at least this many words and letters count, or characters in a script without
# spaces. These are 98 % of the sentences of STS, 83 % of the English sentences of Tatoeba and 73 %
# of its other sentences.
_FEWEST_WORDS, _FEWEST_LETTERS, _FEWEST_CHARACTERS = 4, 15, 8
_MARKS = regex.compile(r"\p{M}+")


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
        known = KnownSentences(self.sets)
        found = known([row[0] for row in rows]) | known([row[1] for row in rows])
        return [self.reasons[0] if each else None for each in found.tolist()]

    def identity(self) -> dict[str, Any]:
        """Return the families of test sets, and a digest of the known sentences."""
        return {
            "sets": [kind.value for kind in self.sets],
            "known": KnownSentences(self.sets).identity,
        }


class KnownSentences:
    """Sentences of families of test sets, as hashes; by default of all families, including
    retrieval.
    """

    def __init__(self, families: Sequence[SetFamily] = tuple(SetFamily)) -> None:
        """Read the hashes; `name` describes them, and `identity` is a digest of them."""
        self.name = f"test sets ({', '.join(kind.value for kind in families)})"
        self._hashes = _known(tuple(families))
        self.identity = f"{self.name} {hashlib.sha256(self._hashes.tobytes()).hexdigest()}"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return which of n texts have the letters, marks and digits of a test sentence, bool (n,)."""
        hashes = sentence_hashes(texts)
        places = np.searchsorted(self._hashes, hashes)
        return self._hashes[np.minimum(places, len(self._hashes) - 1)] == hashes


def sentence_hashes(sentences: Iterable[str]) -> NDArray[np.uint64]:
    """Hash the letters, marks and digits of n sentences: uint64 (n,), of which 40 bits are used."""
    keys = (normalized_key(sentence).encode("utf-8", "surrogatepass") for sentence in sentences)
    digests = b"".join(hashlib.blake2b(key, digest_size=_BYTES).digest() for key in keys)
    return _unpacked(digests)


def telling(sentence: str) -> bool:
    """Whether a sentence is long enough to be distinctive, unlike everyday sentences."""
    letters = len(_MARKS.sub("", normalized_key(sentence)))
    if is_unsegmented(sentence):
        return letters >= _FEWEST_CHARACTERS
    return len(sentence.split()) >= _FEWEST_WORDS and letters >= _FEWEST_LETTERS


def write_known_sentences(
    sentences: Mapping[SetFamily, Iterable[str]], path: Path = KNOWN_TEST_SENTENCES
) -> int:
    """Write the file, without everyday sentences; return the number of hashes."""
    hashes = {
        kind.value: np.unique(sentence_hashes(filter(telling, given)))
        for kind, given in sentences.items()
    }
    with atomic(path) as file:
        file.write(
            _HEADER
            + json.dumps({name: len(each) for name, each in hashes.items()}).encode()
            + b"\n"
        )
        for each in hashes.values():
            file.write(each.astype(">u8").view(np.uint8).reshape(-1, 8)[:, -_BYTES:].tobytes())
    return sum(map(len, hashes.values()))


@cache
def _known(
    families: tuple[SetFamily, ...], path: Path = KNOWN_TEST_SENTENCES
) -> NDArray[np.uint64]:
    with refused(EvaluationError, path, "not readable", "install st_paragram again"):
        line, _, packed = path.read_bytes().removeprefix(_HEADER).partition(b"\n")
        counts = json.loads(line)
        parts = dict(
            zip(
                counts, np.split(_unpacked(packed), np.cumsum([*counts.values()])[:-1]), strict=True
            )
        )
        return np.unique(np.concatenate([parts[kind.value] for kind in families]))


def _unpacked(data: bytes) -> NDArray[np.uint64]:
    wide = np.zeros((len(data) // _BYTES, 8), np.uint8)
    wide[:, -_BYTES:] = np.frombuffer(data, np.uint8).reshape(-1, _BYTES)
    return wide.view(">u8").astype(np.uint64).ravel()
