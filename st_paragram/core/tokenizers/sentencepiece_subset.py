"""Sentencepiece ids where some pieces of the model have no embedding: these are dropped as unknown ones are.

Imported models need it: a piece that did not occur in the training data has no row in a checkpoint of the original
P-SP code, which drops such pieces. Segmentation does not change, so the piece cannot be taken out of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from st_paragram.core.tokenizers.base import Encoded, FlatIds, Tokenizer
from st_paragram.core.tokenizers.flat_ids import drop_unknown
from st_paragram.core.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer
from st_paragram.errors import SettingsError, short


class SentencePieceSubsetTokenizer(Tokenizer):
    """A `SentencePieceTokenizer` that drops some of its ids; a text with none left is the single unknown id."""

    kind: ClassVar[str] = "sentencepiece-subset"

    def __init__(
        self,
        model_proto: bytes,
        lower_case: bool = True,
        segmentation: Segmentation | str = Segmentation.NONE,
        dropped: Sequence[int] = (),
    ) -> None:
        """Load a serialized sentencepiece model.

        Args:
            model_proto: the bytes of a `.model` file.
            lower_case: apply `str.lower` first.
            segmentation: word segmentation of texts with Han characters, after lower-casing.
            dropped: the ids to drop.

        Raises:
            SettingsError: the bytes are not a sentencepiece model, or an option is wrong.
            ValueError: there is no such segmentation.
            MissingExtraError: jieba is asked for and not installed.
        """
        #: The tokenizer that gives all ids.
        self.whole = SentencePieceTokenizer(model_proto, lower_case, segmentation)
        self.unknown_id = self.whole.unknown_id
        for each in dropped:
            if type(each) is not int or not 0 <= each < len(self.whole):
                raise SettingsError(f"dropped has {short(each)}; ids of 0..{len(self.whole) - 1} are expected")
        self._dropped = sorted({*dropped})
        self._is_dropped = np.zeros(len(self.whole), dtype=bool)
        self._is_dropped[self._dropped] = True

    @property
    def lower_case(self) -> bool:
        """Whether texts are lower-cased."""
        return self.whole.lower_case

    @property
    def content(self) -> bytes:
        """The bytes of the `.model` file."""
        return self.whole.content

    @property
    def options(self) -> dict[str, Any]:
        """`lower_case`, `segmentation` and `dropped`."""
        return {**self.whole.options, "dropped": list(self._dropped)}

    def __len__(self) -> int:
        """Number of ids, those that are dropped included."""
        return len(self.whole)

    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts as flat ids; arguments and result are those of `SentencePieceTokenizer.encode`."""
        return self._kept(*self.whole.encode(texts, max_length, num_threads))

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts that need no segmentation, and count those that were cut."""
        encoded = self.whole.encode_normalized(texts, max_length, num_threads)
        return Encoded(*self._kept(encoded.ids, encoded.offsets), encoded.cut)

    def pack(self, rows: Sequence[Sequence[int]]) -> FlatIds:
        """Flatten lists of ids, with the dropped ones dropped.

        Raises:
            SettingsError: something else than a whole number, or an id outside the vocabulary.
        """
        return self._kept(*super().pack(rows))

    def _kept(self, ids: np.ndarray[Any, np.dtype[np.int64]], offsets: np.ndarray[Any, np.dtype[np.int64]]) -> FlatIds:
        marked = np.where(self._is_dropped[ids], self.unknown_id, ids)
        return drop_unknown(marked, np.diff(offsets), self.unknown_id)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; an unknown id shows as `⁇`."""
        return self.whole.decode(ids)

    def piece(self, piece_id: int) -> str | None:
        """The piece; None for one that is unknown, dropped or never in a text."""
        return None if self._is_dropped[piece_id] else self.whole.piece(piece_id)
