"""Tokenization as in the original P-SP and SP code, which looks up each token by its surface
string.

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
    """The id of a surface string (trigram, piece, or word between white space) is its index in a
    list.
    """

    kind: ClassVar[str] = "original"

    def __init__(
        self,
        content: bytes,
        lower_case: bool = True,
        trigrams: bool = False,
        moses: str | None = None,
        segmentation: Segmentation | str = Segmentation.NONE,
    ) -> None:
        """Read content from `write_content`; `moses` is the language whose Moses rules tokenize a
        text first.
        """
        self.trigrams = trigrams
        self._cased = str.lower if lower_case else str
        self._normalize = normalizer(lower_case, Segmentation(segmentation))
        self._moses = None if moses is None else splitting(Splitter.MOSES, moses)
        with refused(
            SettingsError,
            f"{len(content):,} bytes",
            "not the surfaces of a checkpoint",
            "import it again",
        ):
            values = json.loads(content)
            surfaces, packed = checked_strings(values["surfaces"]), values["sentencepiece"]
            model = None if packed is None else base64.b64decode(packed, validate=True)
        if trigrams and model is not None:
            raise SettingsError(
                "trigrams are built from text, not from sentencepiece pieces; give only one of"
                " the two"
            )
        self._processor = None if model is None else SentencePieceTokenizer(model).processor
        options = {"lower_case": lower_case, "trigrams": trigrams, "moses": moses}
        super().__init__(
            content, {**options, "segmentation": Segmentation(segmentation).value}, surfaces
        )

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
            pieces = self._processor.encode(
                list(map(valid, texts)), out_type=str, num_threads=max(num_threads, 1)
            )
            texts = list(map(" ".join, pieces))
        split = (lambda text: trigrams(text.strip())) if self.trigrams else str.split
        return self.encoded(map(split, map(self._cased, texts)), max_length)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids; an unknown id becomes `⁇`."""
        shown = self.shown(ids)
        if self._processor is not None:
            return "".join(shown).replace(META_SYMBOL, " ").strip()
        return joined(shown) if self.trigrams else " ".join(shown)


def write_content(surfaces: Sequence[str], sentencepiece_model: bytes | None = None) -> bytes:
    """Return the content of an `OriginalTokenizer`: JSON with `surfaces` and `sentencepiece`
    (base64 or null).
    """
    model = (
        None
        if sentencepiece_model is None
        else base64.b64encode(sentencepiece_model).decode("ascii")
    )
    return json.dumps(
        {"sentencepiece": model, "surfaces": list(surfaces)}, ensure_ascii=False
    ).encode("utf-8")
