"""A generative model as a SentenceTransformer.

The name of this file matters, as that of `learning.models.sentence_transformers_encoder` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator
from st_paragram.families.bgt.directory import GeneratorValues, read_generator, read_tokenizer, write_generator
from st_paragram.learning.models.averaging import pipeline_settings
from st_paragram.learning.models.pipeline_files import PipelineWithMore


class GenerativeEncoder(PipelineWithMore):
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

    architecture = "generative"
    languages: tuple[str, str]
    sentencepiece: Tokenizer
    _generator: list[BilingualGenerator]  # in a list: a module as an attribute would become part of the pipeline
    _stored: tuple[Path, GeneratorValues]  # where it is read from when first asked for

    @classmethod
    def of(
        cls,
        model: SentenceTransformer,
        languages: tuple[str, str],
        tokenizer: Tokenizer,
        generator: BilingualGenerator | None = None,
    ) -> GenerativeEncoder:
        """A pipeline, which is shared, with its generator."""
        made = cls(modules=list(model), device=str(model.device), **pipeline_settings(model))
        made.languages, made.sentencepiece = languages, tokenizer
        made._generator = [] if generator is None else [generator]
        return made

    @property
    def generator(self) -> BilingualGenerator:
        """Encoders and decoders, in evaluation mode, on the device of the pipeline."""
        if not self._generator:
            self._generator.append(read_generator(*self._stored, self, self.sentencepiece))
        return self._generator[0].to(self.device).eval()

    def write_beside(self, folder: Path) -> dict[str, Any]:
        """Write what is no part of the pipeline; returns the entries of `st_paragram.json`."""
        return write_generator(folder, self.generator, self.languages, self.sentencepiece)


def read_beside(pipeline: SentenceTransformer, folder: Path, values: dict[str, Any]) -> GenerativeEncoder:
    """The model in a folder, whose decoders are read when first asked for."""
    stored = GeneratorValues.checked(folder, values)
    model = GenerativeEncoder.of(pipeline, stored.languages, read_tokenizer(folder, stored))
    model._stored = folder, stored
    return model
