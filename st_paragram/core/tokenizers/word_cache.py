"""Sentencepiece ids of many texts: words are encoded one by one, each of them once, by compiled code.

Texts are split at ASCII spaces; a word's ids are those that sentencepiece gives the word alone, lower-cased if texts
are to be. One after another, they are what it gives the whole text, for the models that the compiled reader accepts.
(All others, and the texts named under 3, go to sentencepiece; `WordEncoder.obstacle` says why.)

0. Lower-casing a text is lower-casing its words: of all characters only the capital sigma looks at its neighbors, and
   not beyond a space (Unicode, section 3.13, Final_Sigma).
1. Normalizing a text is normalizing its words. No rule's key has a space, so matches inside a word do not depend on
   what is around it. Extra whitespace is removed, be it written or put in by rules: between words whose normal form is
   not empty exactly one space remains. It becomes the meta symbol, as the dummy prefix of a word alone does. The meta
   symbol itself, in a text, becomes a space by a rule, and no rule puts it in.
2. No piece crosses from word to word, since none has the meta symbol beyond its first character. Sentencepiece's
   Viterbi search (unigram models only) tries the pieces in the same order in a word alone and in a text, and compares
   sums of scores.
3. Those sums are exact, hence the comparisons do not depend on what was added before: scores are multiples of 2^-10,
   and float32 adds such numbers without rounding below 2^14. The compiled search adds whole numbers instead. It knows
   the most that any beginning of a word costs, with an unknown character behind it (the smallest score less 10); texts
   for which that, and the words before, come to more than 2^14 are left to sentencepiece.
4. Runs of unknown characters become one id. No run crosses a word's beginning, since the meta symbol alone is a piece.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.base import Encoded
from st_paragram.core.tokenizers.flat_ids import starts, take
from st_paragram.errors import SettingsError, one_line

if TYPE_CHECKING:
    import sentencepiece

#: Scores are multiples of this in the vocabularies trained here.
SCORE_STEP = 2.0**-10

_LIMIT_BYTES = 64 << 20
_BLOCK = 1 << 14
_FEW = 8  # texts that are not worth the threads that sentencepiece starts for a list


class WordEncoder:
    """Encodes texts with one sentencepiece model; safe to use from several threads, and after a fork.

    Attributes:
        obstacle: Why every text goes to sentencepiece, or None.
    """

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
        self._cased = str.lower if lower_case else str
        self.obstacle = None if kernels() is not None else "no compiled kernels"
        if not self.obstacle:
            try:
                self.model = kernels().Unigram(model_proto)
                self.cache = kernels().WordCache(self.model, lower_case, limit_bytes)
            except (ValueError, TypeError) as error:
                self.obstacle = one_line(error)
        self.unknown_id: int = self.processor.unk_id() if self.obstacle else self.model.unknown

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
        """
        block = self._encode_words if self.obstacle is None else self._encode_whole
        if len(texts) <= _BLOCK:
            return block(texts, max_length, num_threads, dtype)
        parts = [block(texts[at : at + _BLOCK], max_length, num_threads, dtype) for at in range(0, len(texts), _BLOCK)]
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        return Encoded(np.concatenate([part.ids for part in parts]), starts(counts), sum(part.cut for part in parts))

    def _encode_words(self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike) -> Encoded:
        most = -1 if max_length is None else max(max_length, 0)
        ids, offsets, cut, left = kernels().encode_words(self.cache, texts, most, num_threads, dtype is np.int64)
        if not left:
            return Encoded(ids, offsets, cut)
        whole = self._encode_whole([texts[number] for number in left], max_length, num_threads, dtype)
        begins, counts = offsets[:-1].copy(), np.diff(offsets)
        begins[left], counts[left] = whole.offsets[:-1] + len(ids), np.diff(whole.offsets)
        return Encoded(*take(np.concatenate([ids, whole.ids]), begins, counts), cut + whole.cut)

    def _encode_whole(self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike) -> Encoded:
        cased = list(map(self._cased, texts))
        encode: Any = self.processor.encode
        if len(cased) > _FEW:
            rows = encode(cased, out_type=int, num_threads=min(max(num_threads, 1), len(cased)))
        else:
            rows = [encode(text, out_type=int) for text in cased]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=dtype, count=int(counts.sum()))
        return Encoded.of(ids, counts, self.unknown_id, max_length)
