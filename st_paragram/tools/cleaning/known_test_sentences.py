"""Sentences of test sets, known only by hashes: the file `known_test_sentences.bin` next to this one holds no text.

It has a line with a name and version, a line of JSON `{"sts": count, "tatoeba": count, ...}`, and the sorted hashes of
each family of test sets, 40 bits each, most significant byte first. `data_prep/make_known_test_sets.py` makes it. With
the 150,000 hashes of STS and Tatoeba, one in seven million other sentences is taken for a test sentence by chance.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic
from st_paragram.errors import EvaluationError
from st_paragram.tools.cleaning.normalized_key import normalized_key, normalized_key_hashes
from st_paragram.tools.cleaning.unsegmented_scripts import is_unsegmented

KNOWN_TEST_SENTENCES = Path(__file__).with_name("known_test_sentences.bin")

_HEADER = b"st_paragram test sentences 1\n"
_BITS, _BYTES = 40, 5

# What people say every day ("How old is he?") is in every collection of subtitles and proves nothing. So only sentences
# of at least so many words and letters count, or, in a script without spaces, of so many characters. These are 98 % of
# the sentences of STS, 83 % of the English ones of Tatoeba and 73 % of its others.
_FEWEST_WORDS, _FEWEST_LETTERS, _FEWEST_CHARACTERS = 4, 15, 8


class SetFamily(str, Enum):
    """Families of test sets; development and training parts are among them."""

    STS = "sts"
    TATOEBA = "tatoeba"
    RETRIEVAL = "retrieval"


#: What is refused unless others are named. Retrieval has questions and answers of SQuAD (dev), XQuAD-R and Quora, and
#: premises and hypotheses of SNLI (test) and XNLI (a fifth of dev), which are refused where a model is tested on them.
DEFAULT_FAMILIES = (SetFamily.STS, SetFamily.TATOEBA)


def telling(sentence: str) -> bool:
    """Whether a sentence is long enough to prove something: not one of those that everybody says."""
    words, letters = sentence.split(), len(normalized_key(sentence))
    if is_unsegmented(sentence):
        return letters >= _FEWEST_CHARACTERS
    return len(words) >= _FEWEST_WORDS and letters >= _FEWEST_LETTERS


def sentence_hashes(sentences: Collection[str]) -> NDArray[np.uint64]:
    """Hashes of the letters and digits of n sentences: uint64 (n), of which 40 bits are used."""
    return normalized_key_hashes(list(sentences)) >> np.uint64(64 - _BITS)


def known_hashes(sets: Iterable[SetFamily], path: Path = KNOWN_TEST_SENTENCES) -> NDArray[np.uint64]:
    """The sorted hashes of the sentences of families of test sets.

    Raises:
        EvaluationError: The file is not readable, or lacks a family.
    """
    return np.unique(np.concatenate([_family(kind, path) for kind in sets]))


def among(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of n hashes are among known ones, which are sorted: bool (n,)."""
    places = np.searchsorted(known, hashes)
    return known[np.minimum(places, len(known) - 1)] == hashes if len(known) else np.zeros(len(hashes), np.bool_)


def digest(sets: Iterable[SetFamily] = DEFAULT_FAMILIES, path: Path = KNOWN_TEST_SENTENCES) -> str:
    """SHA-256, in hexadecimal digits, of a file with the default families and these: others do not change it.

    Raises:
        EvaluationError: The file is not readable, or lacks a family.
    """
    asked = {*DEFAULT_FAMILIES, *sets}
    return hashlib.sha256(_packed({kind.value: _family(kind, path) for kind in SetFamily if kind in asked})).hexdigest()


def write_known_sentences(sentences: Mapping[SetFamily, Iterable[str]], path: Path = KNOWN_TEST_SENTENCES) -> int:
    """Write the file, whole or not at all, without sentences that everybody says; return the number of hashes."""
    chosen = {kind: [sentence for sentence in given if telling(sentence)] for kind, given in sentences.items()}
    hashes = {kind.value: np.unique(sentence_hashes(given)) for kind, given in chosen.items()}
    with atomic(path) as file:
        file.write(_packed(hashes))
    return sum(map(len, hashes.values()))


def _packed(hashes: Mapping[str, NDArray[np.uint64]]) -> bytes:
    """The content of a file of families of hashes."""
    counts = json.dumps({name: len(values) for name, values in hashes.items()})
    packed = [values.astype(">u8").view(np.uint8).reshape(-1, 8)[:, -_BYTES:].tobytes() for values in hashes.values()]
    return b"".join([_HEADER, counts.encode(), b"\n", *packed])


def _family(kind: SetFamily, path: Path) -> NDArray[np.uint64]:
    found = _read(path)
    if kind.value not in found:
        raise EvaluationError(f"{path}: not readable (no {kind.value} in it); install st_paragram again")
    return found[kind.value]


@cache
def _read(path: Path) -> dict[str, NDArray[np.uint64]]:
    try:
        data = path.read_bytes()
        if not data.startswith(_HEADER):
            raise ValueError("another format")
        line, _, packed = data[len(_HEADER) :].partition(b"\n")
        counts = {str(name): int(count) for name, count in json.loads(line).items()}
        if len(packed) != _BYTES * sum(counts.values()):
            raise ValueError("incomplete")
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise EvaluationError(f"{path}: not readable ({error}); install st_paragram again") from error
    wide = np.zeros((sum(counts.values()), 8), np.uint8)
    wide[:, -_BYTES:] = np.frombuffer(packed, np.uint8).reshape(-1, _BYTES)
    values = wide.view(">u8").astype(np.uint64).ravel()
    return dict(zip(counts, np.split(values, np.cumsum(list(counts.values()))[:-1]), strict=True))


class KnownSentences:
    """Sentences of families of test sets, known by the hashes that come with the package.

    Attributes:
        name: what they are, for messages.
        identity: a digest of the hashes.
    """

    def __init__(self, families: Sequence[SetFamily] = tuple(SetFamily)) -> None:
        """Read the hashes.

        Args:
            families: of test sets; all of them, retrieval included, if none is named.

        Raises:
            EvaluationError: the file of hashes is not readable.
        """
        self.name = f"test sets ({', '.join(kind.value for kind in families)})"
        self._hashes = known_hashes(families)
        self.identity = f"{self.name} {digest(families)}"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each of n texts has the letters and digits of one of them, bool (n,)."""
        return among(sentence_hashes(texts), self._hashes)
