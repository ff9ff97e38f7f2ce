"""What a generative model's directory has next to the pipeline of its semantic encoder.

model.safetensors, modules.json, ...     the semantic encoder; stock sentence-transformers opens it
language-en/, language-es/               the languages' encoders, pipelines of the same kind
decoders/model.safetensors               decoders, and the maps to log variances
sentencepiece.model, st_paragram.json    for decoders: vocabulary, sizes, which there are
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

from st_paragram.core.encoding.directory import configured, file_of
from st_paragram.core.encoding.model_files import tokenizer_file
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import DAMAGED, ModelDirectoryError, SettingsError, one_line, short
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, DecoderShape, GaussianEncoder
from st_paragram.families.bgt.settings import SIDES, Side
from st_paragram.learning.models import pipeline_files
from st_paragram.learning.modules.transformer_encoder import special_ids

_DECODERS = "decoders/model.safetensors"


@dataclass(frozen=True)
class GeneratorValues:
    """What `st_paragram.json` says of a generative model."""

    languages: tuple[str, str]  # of both sides
    language_encoders: Sequence[Side]  # sides whose language has an encoder
    tokenizer_options: dict[str, Any]
    decoders: DecoderShape

    @classmethod
    def checked(cls, folder: Path, values: dict[str, Any]) -> GeneratorValues:
        """The values, if a generative model can have them."""
        with configured(folder):
            stored = pydantic.TypeAdapter(cls).validate_python(values)
            for language in stored.languages:  # which names a folder
                if not language.replace("_", "").replace("-", "").isalnum():
                    raise ValueError(f"language is {short(language)}")
            return stored


def read_tokenizer(folder: Path, values: GeneratorValues) -> SentencePieceTokenizer:
    """The tokenizer of all parts."""
    path = file_of(folder, tokenizer_file(SentencePieceTokenizer.kind))
    try:
        return SentencePieceTokenizer(path.read_bytes(), **values.tokenizer_options)
    except (SettingsError, *DAMAGED) as error:
        raise ModelDirectoryError(f"{path}: not the vocabulary of this model ({one_line(error)})") from error


def write_generator(
    folder: Path, generator: BilingualGenerator, languages: tuple[str, str], tokenizer: Tokenizer
) -> dict[str, Any]:
    """Write decoders, vocabulary and the languages' encoders; returns the entries of `st_paragram.json`."""
    for side, language in zip(SIDES, languages, strict=True):
        if side in generator.languages:
            encoder = cast("GaussianEncoder", generator.languages[side])
            pipeline_files.write(encoder.pipeline, folder / f"language-{language}")
    (folder / _DECODERS).parent.mkdir(exist_ok=True)
    save_file(_own_tensors(generator), folder / _DECODERS)
    (folder / tokenizer_file(tokenizer.kind)).write_bytes(tokenizer.content)
    sides = [side for side in SIDES if side in generator.languages]
    return asdict(GeneratorValues(languages, sides, tokenizer.options, generator.shape))


def read_generator(
    folder: Path, values: GeneratorValues, semantic: SentenceTransformer, tokenizer: Tokenizer
) -> BilingualGenerator:
    """Read encoders and decoders of a model whose pipeline, the semantic encoder, was read."""
    encoders = {
        side: pipeline_files.read(folder / f"language-{language}", str(semantic.device))
        for side, language in zip(SIDES, values.languages, strict=True)
        if side in values.language_encoders
    }
    with configured(folder, SettingsError):
        generator = BilingualGenerator(semantic, encoders, len(tokenizer), special_ids(tokenizer), values.decoders)
    generator.load_state_dict(pipeline_files.read_tensors(folder, _DECODERS, _own_tensors(generator)), strict=False)
    return generator


def _own_tensors(generator: BilingualGenerator) -> dict[str, Tensor]:
    """What belongs to no pipeline."""
    state = generator.state_dict()
    return {name: tensor.cpu().contiguous() for name, tensor in state.items() if ".pipeline." not in name}
