"""Sentencepiece ids of many texts: words are encoded one by one, each of them once, by compiled code.

Texts are split at ASCII spaces; a word's ids are those that sentencepiece gives the word alone, lower-cased if texts
are to be. One after another, they are what it gives the whole text, for the models that the compiled reader accepts.
(All others, and the texts named under 3, go to sentencepiece; `WordEncoder.obstacle` says why.)

0. Lower-casing a text is lower-casing its words. Of all characters only the capital sigma looks at its neighbors, and
   not beyond a space, which is neither cased nor ignored (Unicode, section 3.13, Final_Sigma).
1. Normalizing a text is normalizing its words. No rule's key has a space, so each space is a separate match and
   matches inside a word do not depend on what is around it. With extra whitespace removed, spaces at a word's
   edges, written there or put there by rules, go away at the ends of a text as well as next to another space; between
   words whose normal form is not empty exactly one space remains. It becomes the meta symbol, as the dummy prefix of
   a word alone does. The meta symbol itself, in a text, becomes a space by a rule, and no rule puts it in.
2. No piece crosses from word to word, since none has the meta symbol beyond its first character: every segmentation
   of the text passes through the words' beginnings. Sentencepiece's Viterbi search (unigram models only) tries the
   pieces in the same order in a word alone and in a text and decides by comparing sums of scores.
3. Those sums are exact, hence the comparisons do not depend on what was added before: scores are multiples of
   2^-10, and float32 adds such numbers without rounding below 2^14. The compiled search adds whole numbers instead. It
   knows the most that any beginning of a word costs, with an unknown character behind it (the smallest score less 10);
   texts for which that, and the words before, come to more than 2^14 are left to sentencepiece.
4. Runs of unknown characters become one id. No run crosses a word's beginning, since the meta symbol alone is a piece.

A word that was met before comes out of a table; another is segmented, without Python's lock, on the threads that look
words up.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.native import kernels, room
from st_paragram.core.tokenizers.base import Encoded
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.errors import SettingsError, one_line

if TYPE_CHECKING:
    import sentencepiece

#: Scores are multiples of this in the vocabularies trained here.
SCORE_STEP = 2.0**-10

_LIMIT_BYTES = 64 << 20
_BLOCK = 1 << 14
_FEW = 8
_BYTES_A_CHARACTER = 64  # of the memory that sentencepiece takes for a text
_NO_IDS = np.zeros(0, dtype=np.int32)
_NO_OFFSETS = np.zeros(1, dtype=np.int64)


class WordEncoder:
    """Encodes texts with one sentencepiece model; safe to use from several threads, and after a fork."""

    def __init__(self, model_proto: bytes, lower_case: bool = False, limit_bytes: int = _LIMIT_BYTES) -> None:
        """Read a model; sentencepiece itself is loaded only if it is needed.

        Args:
            model_proto: the bytes of a `.model` file.
            lower_case: apply `str.lower` first.
            limit_bytes: memory for words and their pieces; a full table starts over.

        Raises:
            SettingsError: the bytes are not a sentencepiece model.
        """
        self.model_proto = model_proto
        self.lower_case = lower_case
        #: Why every text goes to sentencepiece, or None.
        self.obstacle = self._read(limit_bytes)
        self.unknown_id: int = self.processor.unk_id() if self.obstacle else self.model.unknown
        self._cased = str.lower if lower_case else str

    def _read(self, limit_bytes: int) -> str | None:
        if kernels() is None:
            return "no compiled kernels"
        try:
            self.model = kernels().Unigram(self.model_proto)
        except (ValueError, TypeError) as error:
            return one_line(error)
        self.cache = kernels().WordCache(self.model, self.lower_case, limit_bytes)
        return None

    @cached_property
    def processor(self) -> sentencepiece.SentencePieceProcessor:
        """The model as sentencepiece loads it.

        Raises:
            SettingsError: sentencepiece refuses it.
        """
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(self.model_proto)
        except (RuntimeError, UnicodeDecodeError) as error:  # the latter if its message is not UTF-8
            reason = one_line(error)
            raise SettingsError(f"not a sentencepiece model ({len(self.model_proto)} bytes): {reason}") from error
        return processor

    def encode(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1, dtype: DTypeLike = np.int64
    ) -> Encoded:
        """Encode texts.

        Args:
            texts: N strings, segmented already where that is wanted.
            max_length: keep at most this many pieces of a text (counted before unknown pieces are dropped).
            num_threads: threads for words and for sentencepiece.
            dtype: the type of the ids, int64 or int32.

        Raises:
            UnicodeEncodeError, TypeError, RuntimeError: a text has a lone surrogate, or is not a string.
            SettingsError: the threads cannot be started.
            MemoryError: there is not enough memory.
        """
        block = self._encode_words if self.obstacle is None else self._encode_whole
        if len(texts) <= _BLOCK:
            return block(texts, max_length, num_threads, dtype)
        parts = [block(texts[at : at + _BLOCK], max_length, num_threads, dtype) for at in range(0, len(texts), _BLOCK)]
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        return Encoded(np.concatenate([part.ids for part in parts]), starts(counts), sum(part.cut for part in parts))

    def _encode_words(self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike) -> Encoded:
        most = -1 if max_length is None else max(max_length, 0)
        result = kernels().encode_words(self.cache, texts, most, num_threads, dtype is np.int64)
        if not isinstance(result, tuple):
            whole = [texts[number] for number in result.direct()]
            result = result.finish(*self._sentencepiece(whole, num_threads))
        return Encoded(*result)

    def _encode_whole(self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike) -> Encoded:
        ids, offsets = self._sentencepiece(texts, num_threads)
        return Encoded.of(ids.astype(dtype), np.diff(offsets), self.unknown_id, max_length)

    def _sentencepiece(self, texts: list[str], num_threads: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """All ids as sentencepiece gives them, int32 (total,), and their offsets, int64 (N + 1,)."""
        if not texts:
            return _NO_IDS, _NO_OFFSETS
        cased = list(map(self._cased, texts))
        encode: Any = self.processor.encode
        threads = 0
        if len(cased) > _FEW:  # fewer are not worth the threads that sentencepiece starts for every list
            size = _BYTES_A_CHARACTER * sum(map(len, cased))
            threads = room.granted(min(max(num_threads, 1), len(cased)), size)
        if threads:
            rows = encode(cased, out_type=int, num_threads=threads)
        else:
            rows = [encode(text, out_type=int) for text in cased]
        offsets = starts(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
        return np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(offsets[-1])), offsets
