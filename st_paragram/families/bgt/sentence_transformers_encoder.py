"""A generative model as a SentenceTransformer.

The name of this file matters, as that of `learning.models.sentence_transformers_encoder` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding import model_files
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator
from st_paragram.families.bgt.generator_files import read_generator
from st_paragram.learning.models.inputs import taking_columns


@dataclass
class _Beside:
    """Parts of the model outside the pipeline; a module as an attribute would become part of the pipeline."""

    generator: BilingualGenerator | Path
    values: dict[str, Any]


class GenerativeEncoder(SentenceTransformer):
    """A pipeline that embeds sentences, and what else a generative model has.

    Attributes:
        languages: of both sides.
        sentencepiece: the tokenizer of all parts.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("bgt-es", device="cpu")
        >>> len(model.encode(["where is the station"]))
        1
    """

    languages: tuple[str, str]
    sentencepiece: Tokenizer
    _beside: _Beside
    encode = taking_columns(SentenceTransformer.encode)

    @classmethod
    def of(
        cls,
        model: SentenceTransformer,
        languages: tuple[str, str],
        tokenizer: Tokenizer,
        generator: BilingualGenerator | Path,
        values: Mapping[str, Any] | None = None,
    ) -> GenerativeEncoder:
        """A pipeline with its generator, or with a folder that has one, and what `st_paragram.json` says of it."""
        settings = {name: getattr(model, name) for name in model_files.PIPELINE_SETTINGS}
        made = cls(modules=list(model), device=str(model.device), **settings)
        made._model_card_text = model._model_card_text
        made.languages, made.sentencepiece = languages, tokenizer
        made._beside = _Beside(generator, dict(values or {}))
        return made

    @property
    def generator(self) -> BilingualGenerator:
        """Encoders and decoders, in evaluation mode, on the device of the pipeline; read when first asked for.

        Raises:
            ModelDirectoryError: its files are missing or damaged.
        """
        if isinstance(self._beside.generator, Path):
            self._beside.generator = read_generator(
                self._beside.generator, self._beside.values, self, self.sentencepiece
            )
        return self._beside.generator.to(self.device).eval()
