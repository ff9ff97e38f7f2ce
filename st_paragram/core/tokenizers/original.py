"""Tokenization as in the original code of P-SP and SP, which looks up each token as a string.

`embed_sentences.py` and `evaluate_sts.py` of P-SP: optional Moses tokenization, lower-casing,
sentencepiece pieces as strings, lower-casing again, splitting at white space, and a lookup of each
string. So a run of characters unknown to sentencepiece may have a row. Strings without a row are
dropped; a text without any row gets the row of `UUUNKKK`. The code of ACL 2019 looks up words
between white space, or windows of three characters, in the same way.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import ClassVar

from st_paragram.core.tokenizers.base import Encoded, valid
from st_paragram.core.tokenizers.character_trigrams import joined, trigrams
from st_paragram.core.tokenizers.sentencepiece import (
    META_SYMBOL,
    Segmentation,
    SentencePieceTokenizer,
    normalizer,
)
from st_paragram.core.tokenizers.string_lists import StringListTokenizer, checked_strings
from st_paragram.core.tokenizers.words import Splitter, splitting
from st_paragram.errors import SettingsError, refused


class OriginalTokenizer(StringListTokenizer):
    """The id of a surface string (trigram, piece or word) is its index in a list."""

    kind: ClassVar[str] = "original"

    def __init__(
        self,
        content: bytes,
        lower_case: bool = True,
        trigrams: bool = False,
        moses: str | None = None,
        segmentation: Segmentation | str = Segmentation.NONE,
    ) -> None:
        """Read content from `write_content`.

        `moses` is the language whose Moses rules tokenize a text first.
        """
        self.trigrams = trigrams
        self._cased = str.lower if lower_case else str
        self._normalize = normalizer(lower_case, Segmentation(segmentation))
        self._moses = None if moses is None else splitting(Splitter.MOSES, moses)
        model = None
        place = f"{len(content):,} bytes"
        problem = "not the surfaces of a checkpoint"
        with refused(SettingsError, place, problem, "import it again"):
            values = json.loads(content)
            surfaces = checked_strings(values["surfaces"])
            if values["sentencepiece"] is not None:
                model = base64.b64decode(values["sentencepiece"], validate=True)
        if trigrams and model is not None:
            raise SettingsError(
                "trigrams are built from text, not from sentencepiece pieces; give only one of"
                " the two"
            )
        self._processor = None if model is None else SentencePieceTokenizer(model).processor
        options = {
            "lower_case": lower_case,
            "trigrams": trigrams,
            "moses": moses,
            "segmentation": Segmentation(segmentation).value,
        }
        super().__init__(content, options, surfaces)

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """Apply Moses, lower-casing and segmentation."""
        if self._moses is not None:
            texts = [" ".join(self._moses(text)) for text in texts]
        return list(map(self._normalize, texts))

    def encode_normalized(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1
    ) -> Encoded:
        """Encode prepared texts, and count truncated texts."""
        if self._processor is not None:
            rows = self._processor.encode(
                list(map(valid, texts)), out_type=str, num_threads=max(num_threads, 1)
            )
            texts = [" ".join(pieces) for pieces in rows]
        return self.encoded((self._split(self._cased(text)) for text in texts), max_length)

    def _split(self, text: str) -> list[str]:
        return trigrams(text.strip()) if self.trigrams else text.split()

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids; an unknown id becomes `⁇`."""
        shown = self.shown(ids)
        if self._processor is not None:
            return "".join(shown).replace(META_SYMBOL, " ").strip()
        if self.trigrams:
            return joined(shown)
        return " ".join(shown)


def write_content(surfaces: Sequence[str], sentencepiece_model: bytes | None = None) -> bytes:
    """Return the content of an `OriginalTokenizer`, JSON; the sentencepiece model is in base64."""
    model = None
    if sentencepiece_model is not None:
        model = base64.b64encode(sentencepiece_model).decode("ascii")
    values = {"sentencepiece": model, "surfaces": list(surfaces)}
    return json.dumps(values, ensure_ascii=False).encode("utf-8")
