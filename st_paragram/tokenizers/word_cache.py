"""Sentencepiece ids of many texts: words met before come out of a table, the others from sentencepiece itself.

Texts are split at ASCII spaces; a word's ids are those sentencepiece gives it alone, lower-cased if texts are to be.
Put one after another, they are what it gives the whole text, if `obstacle` finds nothing in the model:

0. Lower-casing a text is lower-casing its words. Of all characters only the capital sigma looks at its neighbours, and
   not beyond a space, which is neither cased nor ignored (Unicode, section 3.13, Final_Sigma).
1. Normalising a text is normalising its words. No rule's key has a space, so each space is a match of its own and
   matches inside a word do not depend on what stands around it. With extra whitespace removed, spaces at a word's
   edges, written there or put there by rules, go away at the ends of a text as well as beside another space; between
   words whose normal form is not empty exactly one space remains. It becomes the meta symbol, as the dummy prefix of
   a word alone does. The meta symbol itself, in a text, becomes a space by a rule, and no rule puts it in.
2. No piece crosses from word to word, since none has the meta symbol beyond its first character: every segmentation
   of the text passes through the words' beginnings. Sentencepiece's Viterbi search (unigram models only) tries the
   pieces in the same order in a word alone and in a text and decides by comparing sums of scores.
3. Those sums are exact, hence the comparisons do not depend on what was added before: scores are multiples of
   2^-10, and float32 adds such numbers without rounding below 2^14. A word costs its score, or, if it has an unknown
   character, at most its characters times the unknown score (the smallest score less 10), which also bounds all sums
   met on the way to its best one. Texts whose words cost more than 2^14 - 2^12 together are left to sentencepiece, and
   so are texts with a word for which that bound is above 2^12.
4. Runs of unknown characters become one id. No run crosses a word's beginning, since the meta symbol alone is a piece.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from st_paragram.errors import ModelDirectoryError
from st_paragram.native import kernels, room
from st_paragram.tokenizers.base import Encoded
from st_paragram.tokenizers.flat_ids import drop_unknown, starts, truncate
from st_paragram.tokenizers.sentencepiece_format import (
    META_SYMBOL,
    PieceKind,
    SentencePieceModel,
    keeps_words_apart,
    parse_model,
)

#: Scores are multiples of this in the vocabularies trained here.
SCORE_STEP = 2.0**-10

_UNKNOWN_PENALTY = 10.0
_MOST_COST = 2**14 - 2**12
_MOST_WORD_COST = 2**12
_NEVER = 2**32 - 1
_LIMIT_BYTES = 64 << 20
_BLOCK = 1 << 14
_ROUNDS = 3
_FEW = 8
_BYTES_A_CHARACTER = 64  # of the memory that sentencepiece takes for a text
_BETWEEN = "\ue000"
_NO_IDS = np.zeros(0, dtype=np.int32)
_NO_OFFSETS = np.zeros(1, dtype=np.int64)


def obstacle(model: SentencePieceModel) -> str | None:
    """Why the words of a text cannot be encoded one by one with this model; None if they can (see above)."""
    matched = [piece for piece in model.pieces if piece.kind in (PieceKind.NORMAL, PieceKind.UNUSED)]
    scores = np.array([piece.score for piece in model.pieces if piece.kind == PieceKind.NORMAL])
    reasons = {
        "no unigram model": model.model_type != 1,
        "another treatment of spaces": model.whitespace_as_suffix
        or not (model.dummy_prefix and model.remove_extra_whitespaces and model.escape_whitespaces),
        "normalisation rules that reach across spaces": len(model.charsmap) < 8
        or not keeps_words_apart(model.charsmap),
        "user-defined pieces": any(piece.kind == PieceKind.USER_DEFINED for piece in model.pieces),
        "pieces of several words": any(META_SYMBOL in piece.text[1:] for piece in matched),
        "no piece for the space": not any(
            piece.text == META_SYMBOL and piece.kind == PieceKind.NORMAL for piece in model.pieces
        ),
        "scores that are not rounded": not _rounded(scores),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _rounded(scores: NDArray[np.float64]) -> bool:
    usable = len(scores) > 0 and np.isfinite(scores).all() and (scores <= 0).all()
    return bool(usable and not (scores % SCORE_STEP).any())


class WordEncoder:
    """Encodes texts with one sentencepiece model; safe to use from several threads, and after a fork."""

    def __init__(
        self,
        processor: sentencepiece.SentencePieceProcessor,
        model_proto: bytes,
        lower_case: bool = False,
        limit_bytes: int = _LIMIT_BYTES,
    ) -> None:
        """Make the table of words if the model allows for it and the compiled kernels are there.

        Args:
            processor: the loaded model.
            model_proto: the model.
            lower_case: apply `str.lower` first.
            limit_bytes: memory for words and their pieces; a full table starts over.
        """
        self.processor = processor
        self.lower_case = lower_case
        self.unknown_id: int = processor.unk_id()
        #: Why every text goes to sentencepiece, or None.
        self.obstacle = self._make_table(model_proto, limit_bytes)
        self._cased = str.lower if lower_case else str

    def _make_table(self, model_proto: bytes, limit_bytes: int) -> str | None:
        if kernels() is None:
            return "no compiled kernels"
        try:
            model = parse_model(model_proto)
        except ModelDirectoryError as error:  # sentencepiece could read it
            return str(error)
        reason = obstacle(model)
        if reason is None:
            smallest = min(piece.score for piece in model.pieces if piece.kind == PieceKind.NORMAL)
            self._unknown_cost = _UNKNOWN_PENALTY - smallest
            self._scores = np.array([piece.score for piece in model.pieces])
            self._lengths = np.array([len(piece.text) for piece in model.pieces])
            self.cache = kernels().WordCache(self.unknown_id, round(_MOST_COST / SCORE_STEP), limit_bytes)
        return reason

    def encode(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts.

        Args:
            texts: N strings, segmented already where that is wanted.
            max_length: keep at most this many pieces of a text (counted before unknown pieces are dropped).
            num_threads: threads for the table and for sentencepiece.

        Raises:
            UnicodeEncodeError, TypeError, RuntimeError: a text has a lone surrogate, or is no string.
            SettingsError: the threads of the table cannot be started.
            MemoryError: there is not memory enough.
        """
        block = self._encode_whole if self.obstacle is not None else self._encode_words
        if len(texts) <= _BLOCK:
            return block(texts, max_length, num_threads)
        parts = [block(texts[at : at + _BLOCK], max_length, num_threads) for at in range(0, len(texts), _BLOCK)]
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        return Encoded(np.concatenate([part.ids for part in parts]), starts(counts), sum(part.cut for part in parts))

    def _encode_whole(self, texts: list[str], max_length: int | None, num_threads: int) -> Encoded:
        ids, offsets = self._sentencepiece(texts, num_threads)
        counts = np.diff(offsets)
        if max_length is None:
            return Encoded(*drop_unknown(ids.astype(np.int64), counts, self.unknown_id), 0)
        cut = int((counts > max_length).sum())
        ids, counts = truncate(ids, counts, max_length)
        return Encoded(*drop_unknown(ids.astype(np.int64), counts, self.unknown_id), cut)

    def _encode_words(self, texts: list[str], max_length: int | None, num_threads: int) -> Encoded:
        batch = kernels().WordBatch(self.cache, texts, -1 if max_length is None else max(max_length, 0), num_threads)
        for _ in range(_ROUNDS):  # usually one; more if words are very many or another thread emptied the table
            if batch.complete:
                break
            words = batch.missing()
            if not words:
                break
            batch.learn(*self._learn(words, num_threads))
        whole = [] if batch.complete else [texts[i] for i in batch.direct()]
        return Encoded(*batch.finish(*self._sentencepiece(whole, num_threads)))

    def _learn(
        self, words: list[str], num_threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint32]]:
        """The words' ids and offsets, and what they cost in units of SCORE_STEP."""
        ids, offsets = self._sentencepiece(words, num_threads)
        score = starts(-self._scores[ids])
        cost = score[offsets[1:]] - score[offsets[:-1]]
        characters = starts(self._lengths[ids])
        length = characters[offsets[1:]] - characters[offsets[:-1]]
        unknown = np.unique(np.searchsorted(offsets, np.flatnonzero(ids == self.unknown_id), side="right") - 1)
        length[unknown] = self._normal_lengths([self._cased(words[i]) for i in unknown])
        bound = length * self._unknown_cost
        cost[unknown] = bound[unknown]
        return ids, offsets, np.where(bound > _MOST_WORD_COST, _NEVER, np.ceil(cost / SCORE_STEP)).astype(np.uint32)

    def _normal_lengths(self, words: list[str]) -> list[int]:
        """Characters of the words' normal forms: of all in one text, which has a character of its own between them."""
        parts = self.processor.normalize(f" {_BETWEEN} ".join(words)).split(META_SYMBOL + _BETWEEN)
        if len(parts) != len(words):  # a word has that character
            parts = [self.processor.normalize(word) for word in words]
        return list(map(len, parts))

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
