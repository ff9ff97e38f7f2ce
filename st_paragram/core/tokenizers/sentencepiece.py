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
from st_paragram.core.tokenizers.base import LETTERS, Encoded, FlatIds, Tokenizer, valid
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
    """Encode text with a sentencepiece model after lower-casing and segmentation; safe with threads
    and forks.

    Example:
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
        """Load a model: the path of a `.model` file, its bytes, or a loaded
        `SentencePieceProcessor`.

        Texts are lower-cased, and texts with Han characters are segmented. The ids in `dropped` are
        dropped like unknown ids: an imported embedding matrix may have no rows for them.
        """
        self.content = _model_bytes(model)
        self.lower_case, self.segmentation = lower_case, Segmentation(segmentation)
        self.normalize = normalizer(lower_case, self.segmentation)
        # to encode single words
        self.obstacle = None if kernels() is not None else "no compiled kernels"
        if not self.obstacle:
            try:
                self._model = kernels().Unigram(self.content)
                self._cache = kernels().WordCache(self._model, lower_case, _CACHE_BYTES)
            except ValueError as error:
                self.obstacle = one_line(error)
        self.unknown_id: int = self.processor.unk_id() if self.obstacle else self._model.unknown
        self.dropped = sorted({*dropped})
        self._is_dropped = np.zeros(len(self), dtype=bool)
        self._is_dropped[self.dropped] = True
        self.options = {"lower_case": lower_case, "segmentation": self.segmentation.value}
        self.options |= {"dropped": self.dropped} if dropped else {}

    @cached_property
    def processor(self) -> sentencepiece.SentencePieceProcessor:
        """The model in sentencepiece, loaded when first needed."""
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor()
        seen = f"{len(self.content):,} bytes"
        with refused(SettingsError, seen, "not a sentencepiece model", "give a .model file"):
            processor.LoadFromSerializedProto(self.content)
        return processor

    @cached_property
    def reads_ascii(self) -> bool:
        """Whether every ASCII letter is a known piece, so that each word with one has a known piece
        with a letter.
        """
        ids, offsets = self.encode(list(ascii_letters))
        starts_of_letters = np.flatnonzero(self.kinds_of(ids) == LETTERS)
        return len(np.unique(np.searchsorted(offsets, starts_of_letters, side="right"))) == len(
            ascii_letters
        )

    def __len__(self) -> int:
        """Number of ids, including unknown, control and dropped pieces."""
        return self.processor.get_piece_size() if self.obstacle else len(self._model)

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """Segment texts, if the tokenizer has a segmentation."""
        return list(texts if self.segmentation is Segmentation.NONE else map(self.normalize, texts))

    def encode_rows(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> FlatIds:
        """Encode texts like `encode`, with ids of the type that the compiled means read: int32
        (total,).
        """
        return self.encode_normalized(self.prepared(texts), max_length, num_threads, np.int32)[:2]

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
        return (
            Encoded(*self._kept(encoded.ids, encoded.offsets), encoded.cut)
            if self.dropped
            else encoded
        )

    def _encode_words(
        self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike
    ) -> Encoded:
        most = -1 if max_length is None else max(max_length, 0)
        ids, offsets, cut, left = kernels().encode_words(
            self._cache, texts, most, num_threads, dtype is np.int64
        )
        if not left:
            return Encoded(ids, offsets, cut)
        whole = self._encode_whole(
            [texts[number] for number in left], max_length, num_threads, dtype
        )
        begins, counts = offsets[:-1].copy(), np.diff(offsets)
        begins[left], counts[left] = whole.offsets[:-1] + len(ids), np.diff(whole.offsets)
        return Encoded(*take(np.concatenate([ids, whole.ids]), begins, counts), cut + whole.cut)

    def _encode_whole(
        self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike
    ) -> Encoded:
        cased, encode = (
            list(map(str.lower if self.lower_case else str, texts)),
            self.processor.encode,
        )
        few = len(cased) <= 8  # too few for the threads that sentencepiece starts for a list
        rows: Any = (
            list(map(encode, cased)) if few else encode(cased, num_threads=max(num_threads, 1))
        )
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
        """Return a piece, with a meta symbol at a word's beginning; None for unknown, control,
        unused, dropped ids.
        """
        number = int(piece_id)
        if not self.obstacle:  # without loading sentencepiece
            piece: str | None = self._model.piece(number)
        else:
            model = self.processor
            hidden = model.is_unknown(number) or model.is_control(number) or model.is_unused(number)
            piece = None if hidden else model.id_to_piece(number)
        return None if self._is_dropped[number] else piece


def _model_bytes(model: Any) -> bytes:
    if isinstance(model, bytes):
        return model
    if hasattr(model, "serialized_model_proto"):
        return bytes(model.serialized_model_proto())
    with refused(
        SettingsError, str(model), "not a sentencepiece model", "give the path of a .model file"
    ):
        return Path(model).read_bytes()


def normalizer(lower_case: bool, segmentation: Segmentation) -> Callable[[str], str]:
    """Return the processing before sentencepiece (which applies NFKC rules): lower-casing, then
    segmentation.
    """
    cased = str.lower if lower_case else str
    if segmentation is Segmentation.NONE:
        return cased
    jieba = require("jieba", "zh", 'segmentation "jieba"')
    jieba.setLogLevel("WARNING")

    def segment(text: str) -> str:  # jieba would split words and numbers in scripts other than Han
        text = cased(text)
        return " ".join(" ".join(jieba.cut(text)).split()) if _HAN.search(text) else text

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
    """Train a unigram model on normalized text; its scores are rounded, so that words can be
    encoded one by one.

    The model has the rules of `characters`: it reads these characters as others. A small text gives
    fewer pieces than `size`. Another number of threads gives slightly different pieces.
    """
    import sentencepiece

    table = str.maketrans(dict(characters))
    read = (sentence.translate(table) for sentence in sentences)
    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(sentence for sentence in read if sentence.strip()),
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
            f"a vocabulary of {size} pieces cannot be trained on this text: {one_line(error)}"
        ) from error
    return with_rules(round_scores(model.getvalue()), characters)
