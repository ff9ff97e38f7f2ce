"""Text to sentencepiece ids, in one place for preparation, training and inference.

Compiled code splits texts at ASCII spaces and encodes each word once. For the models that its
reader accepts, the concatenated ids of the words are the ids of the whole text:

0. Lower-casing works word by word: the capital sigma is the only character that depends on its
   neighbors, and never beyond a space (Unicode, section 3.13, Final_Sigma).
1. Normalization works word by word, since no rule's key has a space. Extra whitespace is removed,
    whether written or
   inserted by rules: one space remains between words whose normal form is not empty. It becomes the
   meta symbol, like the dummy prefix of a single word. A rule turns a meta symbol in the text into
   a space, and no rule inserts the meta symbol.
2. No piece crosses word boundaries, since none has the meta symbol after its first character. The
   Viterbi search (unigram models only) tries pieces in the same order in a single word and in a
   text, and compares sums of scores.
3. Those sums are exact, so they do not depend on the preceding text: scores are multiples of 2^-10,
   and float32 adds such numbers without rounding below 2^14. Texts that could cost more are left to
   sentencepiece: the bound counts the preceding words, and the maximum cost of a word's beginning
   plus an unknown character (the smallest score less 10).
4. A run of unknown characters becomes one id. No run crosses a word's beginning, since the meta
    symbol is a piece.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import chain
from pathlib import Path
from string import ascii_letters
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.extras import require
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.base import (
    LETTERS,
    Encoded,
    FlatIds,
    TokenCounts,
    Tokenizer,
    valid,
)
from st_paragram.core.tokenizers.character_map import with_rules
from st_paragram.core.tokenizers.characters import CHARACTERS
from st_paragram.core.tokenizers.flat_ids import drop_unknown, starts, take
from st_paragram.core.tokenizers.model_file import round_scores
from st_paragram.errors import SettingsError, TextError, one_line, refused

if TYPE_CHECKING:
    import sentencepiece

#: Sentencepiece's symbol for a space.
META_SYMBOL = "\u2581"
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_CACHE_BYTES = 64 << 20  # for words and their pieces; a full cache is emptied
_BLOCK = 1 << 14  # texts after which new words are cached


class Segmentation(str, Enum):
    """Word segmentation before sentencepiece."""

    NONE = "none"
    JIEBA = "jieba"


class SentencePieceTokenizer(Tokenizer):
    """Encode text with a sentencepiece model; safe with threads and forks.

    Examples:
        >>> from st_paragram import SentencePieceTokenizer
        >>> tokenizer = SentencePieceTokenizer("p-sp-es/sentencepiece.model")
        >>> ids, offsets = tokenizer.encode(["the train", "is late"])
        >>> len(offsets)
        3
    """

    kind: ClassVar[str] = "sentencepiece"

    def __init__(
        self,
        model: bytes | str | Path | sentencepiece.SentencePieceProcessor,
        lower_case: bool = True,
        segmentation: Segmentation | str = Segmentation.NONE,
        dropped: Sequence[int] = (),
    ) -> None:
        """Load a model.

        Args:
            model: Path of a `.model` file, its bytes, or a loaded `SentencePieceProcessor`.
            lower_case: Lower-case texts.
            segmentation: Word segmentation of texts with Han characters.
            dropped: Ids to drop like unknown ids, since an imported embedding matrix has no rows
                for them.
        """
        self.content: bytes = _model_bytes(model)
        self.lower_case = lower_case
        self.segmentation: Segmentation = Segmentation(segmentation)
        self.normalize: Callable[[str], str] = normalizer(lower_case, self.segmentation)
        # to encode single words
        self.obstacle = None if kernels() is not None else "no compiled kernels"
        if not self.obstacle:
            try:
                self._model = kernels().Unigram(self.content, lower_case)
                self._cache = kernels().WordCache(self._model, _CACHE_BYTES)
            except ValueError as error:
                self.obstacle = one_line(error)
        self.unknown_id: int = self.processor.unk_id() if self.obstacle else self._model.unknown
        self.dropped: list[int] = sorted({*dropped})
        self._is_dropped = np.zeros(len(self), dtype=bool)
        self._is_dropped[self.dropped] = True
        self.options: dict[str, Any] = {
            "lower_case": lower_case,
            "segmentation": self.segmentation.value,
        }
        if dropped:
            self.options["dropped"] = self.dropped

    @cached_property
    def processor(self) -> sentencepiece.SentencePieceProcessor:
        """The model in sentencepiece, loaded when first needed."""
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor()
        place = f"{len(self.content):,} bytes"
        with refused(SettingsError, place, "not a sentencepiece model", "give a .model file"):
            processor.LoadFromSerializedProto(self.content)
        return processor

    @cached_property
    def reads_ascii(self) -> bool:
        """Whether every ASCII letter is a known token.

        Then each word with an ASCII letter has a known piece with a letter.
        """
        ids, offsets = self.encode(list(ascii_letters))
        places = np.flatnonzero(self.kinds_of(ids) == LETTERS)
        known_letters = np.unique(np.searchsorted(offsets, places, side="right"))
        return len(known_letters) == len(ascii_letters)

    def __len__(self) -> int:
        """Number of ids, including unknown, control and dropped tokens."""
        return self.processor.get_piece_size() if self.obstacle else len(self._model)

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """Segment texts, if the tokenizer has a segmentation."""
        if self.segmentation is Segmentation.NONE:
            return list(texts)
        return [self.normalize(text) for text in texts]

    def encode_rows(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> FlatIds:
        """Encode texts like `encode`, with ids int32, which the compiled means read."""
        encoded = self.encode_normalized(self.prepared(texts), max_length, num_threads, np.int32)
        return encoded.ids, encoded.offsets

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts:
        """Count the tokens of texts, including unknown and dropped tokens."""
        prepared = [valid(text) for text in self.prepared(texts)]
        encoded = self._encode_whole(prepared, None, 1, np.int64)  # compiled code does not count
        is_known = (encoded.ids != self.unknown_id) & ~self._is_dropped[encoded.ids]
        return TokenCounts(encoded.tokens, encoded.tokens - int(is_known.sum()))

    def encode_normalized(
        self,
        texts: list[str],
        max_length: int | None = None,
        num_threads: int = 1,
        dtype: DTypeLike = np.int64,
    ) -> Encoded:
        """Encode prepared texts, and count truncated texts; `dtype` is int64 or int32."""
        encode = self._encode_whole if self.obstacle else self._encode_words
        parts = []
        for begin in range(0, len(texts) or 1, _BLOCK):
            block = texts[begin : begin + _BLOCK]
            try:
                parts.append(encode(block, max_length, num_threads, dtype))
            # a lone surrogate; the last two are sentencepiece's
            except (UnicodeEncodeError, TypeError, RuntimeError):
                parts.append(encode(list(map(valid, block)), max_length, num_threads, dtype))
        encoded = parts[0]
        if len(parts) > 1:
            counts = np.concatenate([np.diff(part.offsets) for part in parts])
            ids = np.concatenate([part.ids for part in parts])
            encoded = Encoded(ids, starts(counts), sum(part.cut for part in parts))
        if not self.dropped:
            return encoded
        ids, offsets = self._kept(encoded.ids, encoded.offsets)
        return Encoded(ids, offsets, encoded.cut)

    def _encode_words(
        self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike
    ) -> Encoded:
        most = -1 if max_length is None else max(max_length, 0)
        ids, offsets, cut, left = kernels().encode_words(
            self._cache, texts, most, num_threads, dtype is np.int64
        )
        if not left:
            return Encoded(ids, offsets, cut)
        texts_left = [texts[number] for number in left]
        whole = self._encode_whole(texts_left, max_length, num_threads, dtype)
        begins = offsets[:-1].copy()
        begins[left] = whole.offsets[:-1] + len(ids)
        counts = np.diff(offsets)
        counts[left] = np.diff(whole.offsets)
        ids, offsets = take(np.concatenate([ids, whole.ids]), begins, counts)
        return Encoded(ids, offsets, cut + whole.cut)

    def _encode_whole(
        self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike
    ) -> Encoded:
        if self.lower_case:
            texts = list(map(str.lower, texts))
        rows: Any
        if len(texts) <= 8:  # too few for the threads that sentencepiece starts for a list
            rows = [self.processor.encode(text) for text in texts]
        else:
            rows = self.processor.encode(texts, num_threads=max(num_threads, 1))
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=dtype, count=int(counts.sum()))
        return Encoded.of(ids, counts, self.unknown_id, max_length)

    def _kept(self, ids: NDArray[Any], offsets: NDArray[np.int64]) -> FlatIds:
        marked = np.where(self._is_dropped[ids], ids.dtype.type(self.unknown_id), ids)
        return drop_unknown(marked, np.diff(offsets), self.unknown_id)

    def pack(self, rows: Sequence[Sequence[int]]) -> FlatIds:
        """Flatten lists of ids, with unknown and dropped ids treated as `encode` treats them."""
        return self._kept(*super().pack(rows))

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to lower-cased and normalized text; an unknown id becomes `⁇`."""
        # 0.2.1 does not accept NumPy integers
        return str(self.processor.decode([int(piece_id) for piece_id in ids]))

    def piece(self, piece_id: int) -> str | None:
        """Return a token, with a meta symbol at a word's beginning.

        It is None for unknown, control, unused and dropped ids.
        """
        number = int(piece_id)
        if self._is_dropped[number]:
            return None
        if not self.obstacle:  # without loading sentencepiece
            piece: str | None = self._model.piece(number)
            return piece
        model = self.processor
        if model.is_unknown(number) or model.is_control(number) or model.is_unused(number):
            return None
        return str(model.id_to_piece(number))


def _model_bytes(model: Any) -> bytes:
    if isinstance(model, bytes):
        return model
    if hasattr(model, "serialized_model_proto"):
        return bytes(model.serialized_model_proto())
    advice = "give the path of a .model file"
    with refused(SettingsError, str(model), "not a sentencepiece model", advice):
        return Path(model).read_bytes()


def normalizer(lower_case: bool, segmentation: Segmentation) -> Callable[[str], str]:
    """Return the processing before sentencepiece: lower-casing, then segmentation."""
    cased = str.lower if lower_case else str
    if segmentation is Segmentation.NONE:
        return cased
    jieba = require("jieba", "zh", 'segmentation "jieba"')
    jieba.setLogLevel("WARNING")

    def segment(text: str) -> str:  # jieba would split words and numbers in scripts other than Han
        text = cased(text)
        if not _HAN.search(text):
            return text
        return " ".join(" ".join(jieba.cut(text)).split())

    return segment


def train_vocabulary(
    sentences: Iterable[str],
    size: int = 50_000,
    character_coverage: float = 0.9995,
    num_threads: int = 1,
    max_sentence_bytes: int = 4192,
    seed: int = 0,
    characters: Mapping[str, str] = CHARACTERS,
) -> bytes:
    """Train a unigram model on normalized text.

    Its scores are rounded, so that words can be encoded one by one. It reads the `characters` as
    others. A small text gives fewer pieces than `size`. Another number of threads gives slightly
    different pieces.
    """
    import sentencepiece

    table = str.maketrans(dict(characters))
    translated = (sentence.translate(table) for sentence in sentences)
    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(sentence for sentence in translated if sentence.strip()),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            character_coverage=character_coverage,
            hard_vocab_limit=False,
            num_threads=num_threads,
            max_sentence_length=max_sentence_bytes,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise TextError(
            f"a vocabulary of {size} tokens cannot be trained on this text: {one_line(error)}"
        ) from error
    return with_rules(round_scores(model.getvalue()), characters)
