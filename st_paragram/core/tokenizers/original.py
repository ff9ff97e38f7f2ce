"""Text to rows of a table as the original P-SP and SP code finds them: by the surface of each token.

The original code (`embed_sentences.py`, `evaluate_sts.py` of P-SP) does this with a text: Moses tokenization if asked
for, lower-casing, sentencepiece pieces as strings, lower-casing once more, a split at white space, and a look-up of
each string. So a run of characters that sentencepiece does not know is a string like any other and may have a row.
Strings without a row are dropped; a text that has none left is the row of `UUUNKKK`.

The code of ACL 2019 looks up words between white space, or windows of three characters, in the same way.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from st_paragram.core.extras import require
from st_paragram.core.tokenizers.base import Encoded, FlatIds, Tokenizer
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer
from st_paragram.core.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer, normalizer
from st_paragram.core.tokenizers.sentencepiece_format import META_SYMBOL
from st_paragram.core.tokenizers.string_lists import checked_switch, read_strings, write_strings
from st_paragram.errors import DAMAGED, SettingsError, one_line, short

_UNKNOWN = "⁇"  # as sentencepiece shows it
_FEW = 8


class OriginalTokenizer(Tokenizer):
    """Surfaces to their places in a list; the id behind the last surface is the unknown one."""

    kind: ClassVar[str] = "original"

    def __init__(
        self,
        content: bytes,
        lower_case: bool = True,
        trigrams: bool = False,
        moses: str | None = None,
        segmentation: Segmentation | str = Segmentation.NONE,
    ) -> None:
        """Read a list of surfaces, and the sentencepiece model that goes with it if there is one.

        Args:
            content: what `write_content` gave.
            lower_case: apply `str.lower` before sentencepiece, and to the surfaces before they are looked up.
            trigrams: surfaces are windows of three characters; otherwise pieces, or words between white space.
            moses: the language by whose rules Moses tokenizes a text first; None leaves that out.
            segmentation: word segmentation of Chinese after lower-casing.

        Raises:
            SettingsError: the content is damaged, an option is of another type, or trigrams are to be built from
                pieces.
            ValueError: there is no such segmentation.
            MissingExtraError: Moses or jieba is asked for and not installed.
        """
        self.lower_case = checked_switch("lower_case", lower_case)
        self.trigrams = checked_switch("trigrams", trigrams)
        self.segmentation = Segmentation(segmentation)
        self.moses = moses
        self._moses = _moses(moses)
        self._content = content
        #: The surfaces in the order of their ids.
        self.surfaces, model = _parts(content)
        if trigrams and model is not None:
            raise SettingsError("trigrams are built from text, not from sentencepiece pieces; leave one of the two out")
        self._processor = None if model is None else SentencePieceTokenizer(model).processor
        self._normalize = normalizer(lower_case, self.segmentation)
        self._cased = str.lower if lower_case else str
        self.unknown_id = len(self.surfaces)
        self._ids = {surface: place for place, surface in enumerate(self.surfaces)}

    @property
    def content(self) -> bytes:
        """The surfaces and the sentencepiece model, as `write_content` gives them."""
        return self._content

    @property
    def options(self) -> dict[str, Any]:
        """`lower_case`, `trigrams`, `moses` and `segmentation`."""
        return {
            "lower_case": self.lower_case,
            "trigrams": self.trigrams,
            "moses": self.moses,
            "segmentation": self.segmentation.value,
        }

    def __len__(self) -> int:
        """Number of surfaces, and one for the unknown id."""
        return len(self.surfaces) + 1

    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts as flat ids.

        Args:
            texts: N strings.
            max_length: keep at most this many tokens of a text (counted before unknown ones are dropped).
            num_threads: threads of sentencepiece.

        Returns:
            ids, int64 (total,), and offsets, int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]].
        """
        split = texts if self._moses is None else [" ".join(self._moses(_valid(text))) for text in texts]
        encoded = self.encode_normalized(list(map(self._normalize, split)), max_length, num_threads)
        return encoded.ids, encoded.offsets

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts that Moses, lower-casing and segmentation were applied to, and count those that were cut."""
        tokens = map(self._tokens, texts if self._processor is None else self._pieces(texts, num_threads))
        rows = [[self._ids.get(token, self.unknown_id) for token in text] for text in tokens]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(counts.sum()))
        return Encoded.of(ids, counts, self.unknown_id, max_length)

    def _tokens(self, text: str) -> list[str]:
        """The surfaces of a text, or of pieces with spaces between them."""
        cased = self._cased(text)
        if not self.trigrams:
            return cased.split()
        framed = f" {cased.strip()} "
        return [framed[start : start + 3] for start in range(len(framed) - 2)]

    def _pieces(self, texts: list[str], num_threads: int) -> list[str]:
        """The pieces of each text, with spaces between them."""
        encode: Any = self._processor.encode  # type: ignore[union-attr]
        valid = list(map(_valid, texts))
        if len(valid) > _FEW:
            threads = min(max(num_threads, 1), len(valid))
            return list(map(" ".join, encode(valid, out_type=str, num_threads=threads)))
        return [" ".join(encode(text, out_type=str)) for text in valid]

    def decode(self, ids: Sequence[int]) -> str:
        """A text that has these ids; an unknown id shows as `⁇`."""
        if self.trigrams:
            return CharacterTrigramTokenizer(write_strings(self.surfaces)).decode(ids)
        shown = [self.piece(int(each)) or _UNKNOWN for each in ids]
        if self._processor is None:
            return " ".join(shown)
        return "".join(shown).replace(META_SYMBOL, " ").strip()

    def piece(self, piece_id: int) -> str | None:
        """The surface; None for the unknown id."""
        return None if piece_id == self.unknown_id else self.surfaces[piece_id]


def write_content(surfaces: Sequence[str], sentencepiece_model: bytes | None = None) -> bytes:
    """The content of an `OriginalTokenizer`: JSON with `surfaces` and `sentencepiece`, base64 of a model or null."""
    model = None if sentencepiece_model is None else base64.b64encode(sentencepiece_model).decode("ascii")
    return json.dumps({"sentencepiece": model, "surfaces": list(surfaces)}, ensure_ascii=False).encode("utf-8")


def _parts(content: bytes) -> tuple[list[str], bytes | None]:
    """The surfaces and the sentencepiece model of a content.

    Raises:
        SettingsError: it is damaged.
    """
    try:
        values = json.loads(content)
        surfaces, model = values["surfaces"], values["sentencepiece"]
        if not isinstance(surfaces, list):
            raise TypeError(f"{short(surfaces)} is not a list")
        strings = read_strings(write_strings(surfaces), "surfaces")
        return strings, None if model is None else base64.b64decode(model, validate=True)
    except DAMAGED as error:
        raise SettingsError(f"not the surfaces of a checkpoint ({len(content):,} bytes): {one_line(error)}") from error


def _moses(language: str | None) -> Any:  # noqa: ANN401 - what gives the tokens of a text
    if language is None:
        return None
    if not isinstance(language, str):
        raise SettingsError(f"moses is {short(language)}; a code like en is expected")
    moses = require("sacremoses", "moses", "Moses tokenization").MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(text, escape=False)


def _valid(text: str) -> str:
    """A text that is UTF-8: a lone surrogate becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")
