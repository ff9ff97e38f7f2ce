"""Text to the ids of its character trigrams, and lists of the most frequent trigrams.

A space precedes and follows each text, and every window of three characters is a trigram, spaces included: "ab c"
gives " ab", "ab ", "b c", " c ". So n characters give n trigrams.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"): the encoder
Trigram, which averages embeddings of the 200,000 most frequent trigrams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.base import Encoded, FlatIds, Tokenizer
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.core.tokenizers.string_lists import checked_switch, read_strings, write_strings
from st_paragram.errors import SettingsError, TextError, short

#: A trigram is an int64 while it is looked up: three code points of 21 bits each, the first on top.
_BITS = 21
_SURROGATES = 0xD800 >> 11  # the upper bits of their code points
_BATCH = 1 << 18  # characters that are looked up together
_MERGED = 1 << 20  # counts that are collected, at least, before they are added up
_MOST = 1 << 24  # trigrams that are counted at a time
_UNKNOWN = "⁇"  # as sentencepiece shows it


class CharacterTrigramTokenizer(Tokenizer):
    """Trigrams to their places in a list, the most frequent first; the id behind the last is the unknown one."""

    kind: ClassVar[str] = "trigram"

    def __init__(self, content: bytes, lower_case: bool = True) -> None:
        """Read a list of trigrams.

        Args:
            content: the trigrams in the order of their ids, a JSON list in UTF-8.
            lower_case: apply `str.lower` first; nothing else is done to a text.

        Raises:
            SettingsError: the bytes are not a list of trigrams, or `lower_case` is neither true nor false.
        """
        self.lower_case = checked_switch("lower_case", lower_case)
        self._content = content
        #: The trigrams in the order of their ids.
        self.trigrams = read_strings(content, "trigrams")
        if (other := next((each for each in self.trigrams if len(each) != 3), None)) is not None:
            raise SettingsError(
                f"not a list of trigrams ({len(content):,} bytes): {short(other)} has {len(other)} characters, not 3"
            )
        self.unknown_id = len(self.trigrams)
        keys = _windows("".join(self.trigrams))[::3]
        self._ids = np.argsort(keys)
        self._keys = keys[self._ids]

    @property
    def content(self) -> bytes:
        """The list of trigrams, JSON in UTF-8."""
        return self._content

    @property
    def options(self) -> dict[str, Any]:
        """`lower_case`."""
        return {"lower_case": self.lower_case}

    def __len__(self) -> int:
        """Number of trigrams, and one for the unknown id."""
        return len(self.trigrams) + 1

    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts as flat ids.

        Args:
            texts: N strings.
            max_length: keep at most this many trigrams of a text (counted before unknown ones are dropped).
            num_threads: ignored; one thread does the work.

        Returns:
            ids, int64 (total,), and offsets, int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]].
        """
        encoded = self.encode_normalized(list(texts), max_length, num_threads)
        return encoded.ids, encoded.offsets

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts as `encode` does, and count those that were cut."""
        batches = _batches(map(str.lower, texts) if self.lower_case else texts)
        encoded = [self._encode(batch, max_length) for batch in batches] or [self._encode([], max_length)]
        if len(encoded) == 1:
            return encoded[0]
        ids = np.concatenate([each.ids for each in encoded])
        counts = np.concatenate([np.diff(each.offsets) for each in encoded])
        return Encoded(ids, starts(counts), sum(each.cut for each in encoded))

    def _encode(self, texts: list[str], max_length: int | None) -> Encoded:
        """Encode texts that are lower-cased already, all at once."""
        keys, counts = _keys(texts)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        ids = np.where(self._keys[places] == keys, self._ids[places], self.unknown_id)
        return Encoded.of(ids, counts, self.unknown_id, max_length)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of trigrams in their order, without the spaces around it.

        Where two that follow each other do not overlap, as where unknown ones were dropped between them, both are
        written whole; an unknown id shows as `⁇`.
        """
        pieces = [self.piece(int(each)) or _UNKNOWN for each in ids]
        chained = [one[0] if one[1:] == other[:2] else one for one, other in pairwise(pieces)]
        return "".join(chained + pieces[-1:]).removeprefix(" ").removesuffix(" ")

    def piece(self, piece_id: int) -> str | None:
        """The trigram; None for the unknown id."""
        return None if piece_id == self.unknown_id else self.trigrams[piece_id]


def train_trigrams(texts: Iterable[str], size: int = 200_000, lower_case: bool = True) -> bytes:
    """The most frequent trigrams, as the content of a `CharacterTrigramTokenizer`.

    The order of the texts does not matter, unless there are more than 16 million different trigrams: then the rarest
    so far are forgotten while the text is read, so that memory stays bounded.

    Args:
        texts: read once.
        size: trigrams to keep; of equally frequent ones those that sort first.
        lower_case: apply `str.lower` first.

    Raises:
        TextError: there is no trigram in the texts.
        SettingsError: a size below 1, or `lower_case` is neither true nor false.
    """
    if size < 1:
        raise SettingsError(f"vocabulary size is {size} trigrams; give at least 1")
    keys, counts = _counted(map(str.lower, texts) if checked_switch("lower_case", lower_case) else texts)
    if not len(keys):
        raise TextError("no trigrams to build a vocabulary from; give more text")
    text = _text(keys[np.argsort(-counts, kind="stable")[:size]])
    return write_strings([text[start : start + 3] for start in range(0, len(text), 3)])


def _counted(texts: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different trigrams of all texts, in order, and how often each occurs; both int64."""
    merged = _added_up([])
    waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for batch in _batches(texts):
        waiting.append(_without_surrogates(*np.unique(_keys(batch)[0], return_counts=True)))
        if sum(len(keys) for keys, _ in waiting) > max(_MERGED, len(merged[0])):
            merged, waiting = _most_frequent(*_added_up([merged, *waiting])), []
    return _added_up([merged, *waiting])


def _added_up(
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    empty = np.zeros(0, dtype=np.int64)
    keys, places = np.unique(np.concatenate([empty, *(keys for keys, _ in parts)]), return_inverse=True)
    counts = np.zeros(len(keys), dtype=np.int64)
    np.add.at(counts, places, np.concatenate([empty, *(counts for _, counts in parts)]))
    return keys, counts


def _most_frequent(keys: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All, or half of the most that are counted, in the order of the keys."""
    if len(keys) <= _MOST:
        return keys, counts
    kept = np.sort(np.argsort(-counts, kind="stable")[: _MOST // 2])
    return keys[kept], counts[kept]


def _without_surrogates(
    keys: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Those that can be written: a lone surrogate is not text."""
    text = np.all([part >> 11 != _SURROGATES for part in _characters(keys)], axis=0)
    return keys[text], counts[text]


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts, together as long as is looked up at a time; a longer text is by itself."""
    batch: list[str] = []
    room = _BATCH
    for text in texts:
        if batch and len(text) > room:
            yield batch
            batch, room = [], _BATCH
        batch.append(text)
        room -= len(text) + 2
    if batch:
        yield batch


def _keys(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The trigrams of texts one after another, int64 (total,), and how many each has, int64 (N,)."""
    counts = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    windows = _windows(f" {'  '.join(texts)} ")
    inside = np.ones(len(windows), dtype=np.bool_)
    ends = np.cumsum(counts + 2)[:-1]
    inside[ends - 2] = inside[ends - 1] = False  # these reach from one text into the next
    return windows[inside], counts


def _windows(text: str) -> NDArray[np.int64]:
    """Every three characters that follow each other, as int64 (n - 2,)."""
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    return (characters[:-2] << 2 * _BITS) | (characters[1:-1] << _BITS) | characters[2:]


def _characters(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """The code points of trigrams: of their first characters, of their second and of their third ones."""
    mask = (1 << _BITS) - 1
    return keys >> 2 * _BITS, (keys >> _BITS) & mask, keys & mask


def _text(keys: NDArray[np.int64]) -> str:
    """Trigrams one after another."""
    return np.stack(_characters(keys), axis=1).astype("<u4").tobytes().decode("utf-32-le")
