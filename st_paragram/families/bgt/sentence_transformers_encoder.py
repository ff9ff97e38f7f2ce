"""A generative model as a SentenceTransformer, and the files next to its pipeline.

model.safetensors, modules.json, ...     the semantic encoder; plain sentence-transformers opens it
language-en/, language-es/               the language encoders, pipelines of the same kind
decoders/model.safetensors               decoders, and the maps to log variances
sentencepiece.model, st_paragram.json    vocabulary, names and sizes of the decoders

The name of this file matters, like that of `learning.models.sentence_transformers_encoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pydantic
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_paragram.core.model_directory.configuration import configured, file_of
from st_paragram.core.model_directory.model_files import tokenizer_file
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, refused, short
from st_paragram.families.bgt.bilingual_generator import (
    BilingualGenerator,
    DecoderShape,
    GaussianEncoder,
)
from st_paragram.families.bgt.settings import SIDES, Side
from st_paragram.learning.models import pipeline_files
from st_paragram.learning.models.averaging import pipeline_settings
from st_paragram.learning.modules.transformer_encoder import special_ids

_DECODERS = "decoders/model.safetensors"


@dataclass(frozen=True)
class GeneratorValues:
    """The entries of `st_paragram.json` for a generative model."""

    languages: tuple[str, str]  # languages of both sides
    language_encoders: Sequence[Side]  # sides with a language encoder
    tokenizer_options: dict[str, Any]
    decoders: DecoderShape


class GenerativeEncoder(pipeline_files.PipelineWithMore):
    """A SentenceTransformer that embeds sentences with the semantic encoder of a generative model.

    Attributes:
        languages: Languages of both sides.
        sentencepiece: The tokenizer of all parts.

    Examples:
        >>> import st_paragram
        >>> model = st_paragram.load("bgt-es", device="cpu")
        >>> len(model.encode(["where is the station"]))
        1
    """

    architecture = "generative"
    languages: tuple[str, str]
    sentencepiece: Tokenizer
    # in a list: a module as an attribute would become part of the pipeline
    _generator: list[BilingualGenerator]
    # where the generator is read from when first needed
    _folder: Path
    _values: GeneratorValues

    @classmethod
    def of(
        cls,
        model: SentenceTransformer,
        languages: tuple[str, str],
        tokenizer: Tokenizer,
        generator: BilingualGenerator | None = None,
    ) -> GenerativeEncoder:
        """Combine a pipeline, which is shared, with its generator."""
        encoder = cls(modules=list(model), device=str(model.device), **pipeline_settings(model))
        encoder.languages = languages
        encoder.sentencepiece = tokenizer
        encoder._generator = [] if generator is None else [generator]
        return encoder

    @property
    def generator(self) -> BilingualGenerator:
        """The encoders and decoders, in evaluation mode, on the pipeline's device."""
        if not self._generator:
            self._generator.append(self._read_generator())
        return self._generator[0].to(self.device).eval()

    def _read_generator(self) -> BilingualGenerator:
        encoders = {}
        for side in self._values.language_encoders:
            folder = self._language_folder(self._folder, side)
            encoders[side] = pipeline_files.read(folder, str(self.device))
        tokenizer = self.sentencepiece
        with configured(self._folder, SettingsError):
            special = special_ids(tokenizer)
            generator = BilingualGenerator(
                self, encoders, len(tokenizer), special=special, shape=self._values.decoders
            )
        tensors = pipeline_files.read_tensors(self._folder, _DECODERS, _own_tensors(generator))
        generator.load_state_dict(tensors, strict=False)
        return generator

    def _language_folder(self, folder: Path, side: Side) -> Path:
        return folder / f"language-{self.languages[SIDES.index(side)]}"

    def write_beside(self, folder: Path) -> dict[str, Any]:
        """Write decoders, vocabulary and language encoders; return the configuration."""
        generator = self.generator
        sides = [side for side in SIDES if side in generator.languages]
        for side in sides:
            encoder = cast("GaussianEncoder", generator.languages[side])
            pipeline_files.write(encoder.pipeline, self._language_folder(folder, side))
        (folder / _DECODERS).parent.mkdir(exist_ok=True)
        save_file(_own_tensors(generator), folder / _DECODERS)
        tokenizer = self.sentencepiece
        (folder / tokenizer_file(tokenizer.kind)).write_bytes(tokenizer.content)
        values = GeneratorValues(self.languages, sides, tokenizer.options, generator.shape)
        return asdict(values)


def read_beside(
    pipeline: SentenceTransformer, folder: Path, values: dict[str, Any]
) -> GenerativeEncoder:
    """Return the model in a folder; its decoders are read when first needed."""
    with configured(folder):
        stored = pydantic.TypeAdapter(GeneratorValues).validate_python(values)
        for language in stored.languages:  # a folder name
            if not language.replace("_", "").replace("-", "").isalnum():
                raise ValueError(f"language is {short(language)}")
    path = file_of(folder, tokenizer_file(SentencePieceTokenizer.kind))
    message = "not the vocabulary of this model"
    with refused(ModelDirectoryError, path, message, "save it again", SettingsError):
        tokenizer = SentencePieceTokenizer(path.read_bytes(), **stored.tokenizer_options)
    model = GenerativeEncoder.of(pipeline, stored.languages, tokenizer)
    model._folder = folder
    model._values = stored
    return model


def _own_tensors(generator: BilingualGenerator) -> dict[str, Tensor]:
    """Return the tensors that do not belong to a pipeline."""
    tensors = {}
    for name, tensor in generator.state_dict().items():
        if ".pipeline." not in name:
            tensors[name] = tensor.cpu().contiguous()
    return tensors
