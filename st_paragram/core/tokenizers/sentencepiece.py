"""Text to sentencepiece ids, in one place for preparation, training and inference."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.extras import require
from st_paragram.core.tokenizers.base import Encoded, FlatIds, Tokenizer, checked_switch
from st_paragram.core.tokenizers.flat_ids import drop_unknown
from st_paragram.core.tokenizers.model_file import round_scores
from st_paragram.core.tokenizers.word_cache import WordEncoder
from st_paragram.errors import SettingsError, TextError, one_line, refused, short

if TYPE_CHECKING:
    import sentencepiece

#: What sentencepiece writes for a space.
META_SYMBOL = "\u2581"
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


class Segmentation(str, Enum):
    """Word segmentation done before sentencepiece sees a text."""

    NONE = "none"
    JIEBA = "jieba"


class SentencePieceTokenizer(Tokenizer):
    """A sentencepiece model with what must be done to a text before it: lower-casing and segmentation.

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
        """Load a sentencepiece model.

        Args:
            model: the path of a `.model` file, its bytes, or the model as sentencepiece has loaded it.
            lower_case: apply `str.lower` first.
            segmentation: word segmentation of texts with Han characters, after lower-casing.
            dropped: ids to drop as unknown ones are: an imported table may have no row for them.
        """
        self.model_proto = self.content = _model_bytes(model)
        self.lower_case = checked_switch("lower_case", lower_case)
        self.segmentation = Segmentation(segmentation)
        self._encoder = WordEncoder(self.content, lower_case)
        self.unknown_id = self._encoder.unknown_id
        self.normalize = normalizer(lower_case, self.segmentation)
        self.options = {"lower_case": lower_case, "segmentation": self.segmentation.value}
        if wrong := [each for each in dropped if type(each) is not int or not 0 <= each < len(self)]:
            raise SettingsError(f"dropped has {short(wrong[0])}; ids of 0..{len(self) - 1} are expected")
        self.dropped = sorted({*dropped})
        self.options |= {"dropped": self.dropped} if dropped else {}
        self._is_dropped = np.zeros(len(self), dtype=bool)
        self._is_dropped[self.dropped] = True

    @cached_property
    def processor(self) -> sentencepiece.SentencePieceProcessor:
        """The model as sentencepiece loads it, when it is first asked for."""
        return self._encoder.processor

    def __len__(self) -> int:
        """Number of ids, the unknown, control and dropped pieces included."""
        return self.processor.get_piece_size() if self._encoder.obstacle else len(self._encoder.model)

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """The texts, segmented if that is wanted."""
        return list(texts if self.segmentation is Segmentation.NONE else map(self.normalize, texts))

    def encode_rows(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Encode texts as `encode` does, as ids of the type that the compiled means read: int32 (total,)."""
        encoded = self.encode_normalized(self.prepared(texts), max_length, num_threads, np.int32)
        return encoded.ids, encoded.offsets

    def encode_normalized(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1, dtype: DTypeLike = np.int64
    ) -> Encoded:
        """Encode prepared texts, and count those that lose ids by being cut; arguments as of `encode`."""
        try:
            encoded = self._encoder.encode(texts, max_length, num_threads, dtype)
        except (UnicodeEncodeError, TypeError, RuntimeError):  # the last two are sentencepiece's own
            # A lone surrogate cannot be UTF-8; "?" keeps the rest of the text instead of failing.
            cased = map(str.lower if self.lower_case else str, texts)
            repaired = [text.encode("utf-8", "replace").decode("utf-8") for text in cased]
            encoded = self._encoder.encode(repaired, max_length, num_threads, dtype)
        return Encoded(*self._kept(encoded.ids, encoded.offsets), encoded.cut) if self.dropped else encoded

    def _kept(self, ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> FlatIds:
        marked = np.where(self._is_dropped[ids], ids.dtype.type(self.unknown_id), ids)
        return drop_unknown(marked, np.diff(offsets), self.unknown_id)

    def pack(self, rows: Sequence[Sequence[int]]) -> FlatIds:
        """Flatten lists of ids, with unknown and dropped ids treated as `encode` treats them."""
        return self._kept(*super().pack(rows))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, lower-cased and normalized as it was encoded; an unknown id shows as `⁇`."""
        return str(self.processor.decode([int(one) for one in ids]))  # 0.2.1 knows no ids of numpy

    def piece(self, piece_id: int) -> str | None:
        """The piece with a meta symbol where a word begins; None for unknown, control, unused and dropped ones."""
        number = int(piece_id)
        if not self._encoder.obstacle:  # without loading sentencepiece
            piece: str | None = self._encoder.model.piece(number)
        else:
            model = self.processor
            hidden = model.is_unknown(number) or model.is_control(number) or model.is_unused(number)
            piece = None if hidden else model.id_to_piece(number)
        return None if self._is_dropped[number] else piece


def _model_bytes(model: object) -> bytes:
    if isinstance(model, str | Path):
        with refused(SettingsError, model, "no sentencepiece model", "give the path of a .model file"):
            return Path(model).read_bytes()
    if hasattr(model, "serialized_model_proto"):
        model = model.serialized_model_proto()
    if not isinstance(model, bytes):
        seen = type(model).__name__
        raise SettingsError(f"no sentencepiece model: {seen}; give a path, bytes or a SentencePieceProcessor")
    return model


def normalizer(lower_case: bool, segmentation: Segmentation) -> Callable[[str], str]:
    """What is done to a text before sentencepiece (which has its NFKC rules): lower-case, then segment."""
    cased = str.lower if lower_case else str
    if segmentation is Segmentation.NONE:
        return cased
    jieba = require("jieba", "zh", 'segmentation "jieba"')
    jieba.setLogLevel("WARNING")

    def segment(text: str) -> str:
        """Only texts with Han characters: jieba would tear apart the words and numbers of other scripts."""
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
) -> bytes:
    """Train a sentencepiece unigram model; its scores are rounded, so that words can be encoded one by one.

    The text is normalized already, and read once. A small one gives fewer pieces than `size`, and another number of
    threads gives slightly other ones (the order of sentencepiece's sums).
    """
    import sentencepiece

    stream = iter(sentences)
    if (first := next(stream, None)) is None:
        raise TextError("no sentences to train a vocabulary on; give more text")
    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(sentence for sentence in chain([first], stream) if sentence.strip()),
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
        raise TextError(f"no vocabulary of {size} pieces can be trained on this text: {one_line(error)}") from error
    return round_scores(model.getvalue())
