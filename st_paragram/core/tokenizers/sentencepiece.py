"""Text to sentencepiece ids, in one place for preparation, training and inference."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.extras import require
from st_paragram.core.tokenizers.base import Encoded, FlatIds, Tokenizer
from st_paragram.core.tokenizers.sentencepiece_format import round_scores
from st_paragram.core.tokenizers.word_cache import SCORE_STEP, WordEncoder
from st_paragram.errors import ParagramError, SettingsError, TextError

if TYPE_CHECKING:
    import sentencepiece

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


class Segmentation(str, Enum):
    """Word segmentation done before sentencepiece sees a text."""

    NONE = "none"
    JIEBA = "jieba"


class SentencePieceTokenizer(Tokenizer):
    """A sentencepiece model with what must be done to a text before it: lower-casing and segmentation.

    Unknown pieces are dropped; a text with no known piece (empty, or only unknown) is the single unknown id, so
    that its mean is defined (EMNLP 2022, section 3).

    Example:
        >>> from st_paragram import SentencePieceTokenizer
        >>> with open("p-sp-es/sentencepiece.model", "rb") as file:
        ...     tokenizer = SentencePieceTokenizer(file.read())
        >>> ids, offsets = tokenizer.encode(["the train", "is late"])
        >>> len(offsets)
        3
    """

    kind: ClassVar[str] = "sentencepiece"

    def __init__(
        self, model_proto: bytes, lower_case: bool = True, segmentation: Segmentation | str = Segmentation.NONE
    ) -> None:
        """Load a serialized sentencepiece model.

        Args:
            model_proto: the bytes of a `.model` file.
            lower_case: apply `str.lower` first.
            segmentation: word segmentation of texts with Han characters, after lower-casing.

        Raises:
            SettingsError: the bytes are not a sentencepiece model, or `lower_case` is neither true nor false.
            ValueError: there is no such segmentation.
            MissingExtraError: jieba is asked for and not installed.
        """
        if not isinstance(lower_case, bool):
            raise SettingsError(f"lower_case is {lower_case!r}; true or false is expected")
        self.model_proto = model_proto
        self.lower_case = lower_case
        self.segmentation = Segmentation(segmentation)
        self._encoder = WordEncoder(model_proto, lower_case)
        self.unknown_id = self._encoder.unknown_id
        self.normalize = normalizer(lower_case, self.segmentation)

    @cached_property
    def processor(self) -> sentencepiece.SentencePieceProcessor:
        """The model as sentencepiece loads it, when it is first asked for."""
        return self._encoder.processor

    @property
    def content(self) -> bytes:
        """The bytes of the `.model` file."""
        return self.model_proto

    @property
    def options(self) -> dict[str, Any]:
        """`lower_case` and `segmentation`."""
        return {"lower_case": self.lower_case, "segmentation": self.segmentation.value}

    def __len__(self) -> int:
        """Number of ids, the unknown and control pieces included."""
        return self.processor.get_piece_size() if self._encoder.obstacle else len(self._encoder.model)

    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts as flat ids.

        Args:
            texts: N strings.
            max_length: keep at most this many pieces of a text (counted before unknown pieces are dropped).
            num_threads: threads to use.

        Returns:
            ids, int64 (total,), and offsets, int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]].
        """
        encoded = self.encode_normalized(self._segmented(texts), max_length, num_threads)
        return encoded.ids, encoded.offsets

    def encode_rows(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Encode texts as `encode` does, as ids of the type that the compiled means read: int32 (total,)."""
        encoded = self._encode(self._segmented(texts), max_length, num_threads, np.int32)
        return encoded.ids, encoded.offsets

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts as `encode` does, without segmenting them: they went through `normalize`, or need none."""
        return self._encode(texts, max_length, num_threads, np.int64)

    def _segmented(self, texts: Sequence[str]) -> list[str]:
        return list(texts if self.segmentation is Segmentation.NONE else map(self.normalize, texts))

    def _encode(self, texts: list[str], max_length: int | None, num_threads: int, dtype: DTypeLike) -> Encoded:
        try:
            return self._encoder.encode(texts, max_length, num_threads, dtype)
        except (UnicodeEncodeError, TypeError, RuntimeError):  # the last two are sentencepiece's own
            # A lone surrogate cannot be UTF-8; "?" keeps the rest of the text instead of failing.
            cased = map(str.lower if self.lower_case else str, texts)
            repaired = [text.encode("utf-8", "replace").decode("utf-8") for text in cased]
        return self._encoder.encode(repaired, max_length, num_threads, dtype)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, lower-cased and normalized as it was encoded; an unknown id shows as `⁇`."""
        with _utf8_expected():
            text: str = self.processor.decode([int(one) for one in ids])  # 0.2.1 knows no ids of numpy
            return text

    def piece(self, piece_id: int) -> str | None:
        """The piece with a meta symbol where a word begins; None for the unknown, control and unused pieces."""
        piece_id = int(piece_id)  # 0.2.1 knows no ids of numpy
        if not self._encoder.obstacle:
            known: str | None = self._encoder.model.piece(piece_id)
            return known
        processor = self.processor
        if processor.is_unknown(piece_id) or processor.is_control(piece_id) or processor.is_unused(piece_id):
            return None
        with _utf8_expected():
            piece: str = processor.id_to_piece(piece_id)
            return piece


@contextmanager
def _utf8_expected() -> Iterator[None]:
    """Sentencepiece looks at a model's bytes when it loads it, but not whether its pieces and rules are UTF-8.

    Raises:
        SettingsError: they are not.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise SettingsError("the sentencepiece model has pieces or rules that are not UTF-8; copy it again") from error


def normalizer(lower_case: bool, segmentation: Segmentation) -> Callable[[str], str]:
    """What is done to a text before sentencepiece (which has its NFKC rules): lower-case, then segment.

    Raises:
        MissingExtraError: jieba is asked for and not installed.
    """
    if segmentation is Segmentation.NONE:
        return str.lower if lower_case else str
    segment = _jieba_segmenter()
    return (lambda text: segment(text.lower())) if lower_case else segment


def train_vocabulary(
    sentences: Iterable[str],
    size: int = 50_000,
    character_coverage: float = 0.9995,
    num_threads: int = 1,
    max_sentence_bytes: int = 4192,
    seed: int = 0,
) -> bytes:
    """Train a sentencepiece unigram model; its scores are rounded, so that words can be encoded one by one.

    Args:
        sentences: normalized text; read once.
        size: vocabulary size asked for; a small text gives fewer pieces.
        character_coverage: share of characters that the pieces must cover.
        num_threads: sentencepiece threads; another number gives slightly other pieces (the order of its sums).
        max_sentence_bytes: longer sentences are left out of the training of the vocabulary.
        seed: seed of sentencepiece's random generator.

    Returns:
        The serialized model.

    Raises:
        TextError: no sentence, or too little text for any vocabulary.
        SettingsError: a size of less than one piece per character.
    """
    stream = iter(sentences)
    first = next(stream, None)
    if first is None:
        raise TextError("no sentences to train a vocabulary on; give more text")
    import sentencepiece

    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_nonempty(chain([first], stream)),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            character_coverage=character_coverage,
            hard_vocab_limit=False,
            num_threads=num_threads,
            max_sentence_length=max_sentence_bytes,
            train_extremely_large_corpus=False,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(size, error) from error
    return round_scores(model.getvalue(), SCORE_STEP)


def _training_error(size: int, error: RuntimeError) -> ParagramError:
    reason = str(error).strip().replace("\n", " ")
    if "too small" in reason or "smaller than required_chars" in reason:
        return SettingsError(f"a vocabulary of {size} pieces cannot hold the text's characters: {reason}")
    return TextError(f"sentencepiece could not train a vocabulary of {size} pieces: {reason}")


def _nonempty(sentences: Iterable[str]) -> Iterator[str]:
    return (sentence for sentence in sentences if sentence.strip())


def _jieba_segmenter() -> Callable[[str], str]:
    jieba = require("jieba", "zh", 'segmentation "jieba"')
    jieba.setLogLevel("WARNING")

    def segment(text: str) -> str:
        """Only texts with Han characters: jieba would tear apart the words and numbers of other scripts."""
        return " ".join(" ".join(jieba.cut(text)).split()) if _HAN.search(text) else text

    return segment
