"""The files of a generative model: a stock pipeline, with the languages' pipelines and the decoders beside it.

    model.safetensors, modules.json, ...     the semantic encoder; stock sentence-transformers opens it
    language-en/, language-es/               the languages' encoders, pipelines of the same kind
    decoders/model.safetensors               decoders, and the maps to log variances
    sentencepiece.model, st_paragram.json    for decoders: vocabulary, sizes, which there are

`st_paragram.load` gives a `GenerativeEncoder`, which reads what stands beside the pipeline when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pydantic
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from st_paragram.core.damage import DAMAGED, one_line, refused, short
from st_paragram.core.encoding import averaging
from st_paragram.core.encoding.configuration import Configuration, configured, file_of, write_configuration
from st_paragram.core.encoding.table import TableType
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, DecoderShape
from st_paragram.families.bgt.gaussian_latent import GaussianEncoder
from st_paragram.families.bgt.generative_objective import SIDES, Side
from st_paragram.learning.models import stock
from st_paragram.learning.modules.compact_embedding import is_finite
from st_paragram.learning.modules.transformer_encoder import special_ids

#: The name of the architecture in `st_paragram.json`.
GENERATIVE = "generative"

_DECODERS = "decoders/model.safetensors"


@dataclass
class _Beside:
    """What stands beside a pipeline: an attribute of it that is a module would become a part of it."""

    generator: BilingualGenerator | Path
    values: dict[str, Any]


class GenerativeEncoder(SentenceTransformer):
    """A pipeline that embeds sentences, and what else a generative model has.

    Attributes:
        languages: of both sides.
        sentencepiece: the tokenizer of all parts.
    """

    languages: tuple[str, str]
    sentencepiece: Tokenizer
    _beside: _Beside

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
        settings = {name: getattr(model, name) for name in averaging.PIPELINE_SETTINGS}
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
            self._beside.generator = _read_generator(self._beside.generator, self._beside.values, self)
        return self._beside.generator.to(self.device).eval()


def holds(model: SentenceTransformer) -> bool:
    """Whether a pipeline is a generative model's."""
    return isinstance(model, GenerativeEncoder)


def check(model: SentenceTransformer) -> None:
    """Nothing to refuse: a generative model was made of what can be written."""


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the pipeline and what stands beside it; arguments and errors as of `stock.write`."""
    assert isinstance(model, GenerativeEncoder)
    generator, tokenizer = model.generator, model.sentencepiece
    stock.write(model, folder, dtype, truncate_dim, GENERATIVE)
    for side, language in zip(SIDES, model.languages, strict=True):
        if side in generator.languages:
            stock.write(cast("GaussianEncoder", generator.languages[side]).pipeline, folder / f"language-{language}")
    (folder / _DECODERS).parent.mkdir(exist_ok=True)
    save_file(_own_tensors(generator), folder / _DECODERS)
    (folder / averaging.tokenizer_file(tokenizer.kind)).write_bytes(tokenizer.content)
    values = {
        "languages": list(model.languages),
        "language_encoders": [side for side in SIDES if side in generator.languages],
        "tokenizer_options": tokenizer.options,
        "decoders": asdict(generator.shape),
    }
    write_configuration(folder, Configuration(GENERATIVE, values))


def _own_tensors(generator: BilingualGenerator) -> dict[str, torch.Tensor]:
    """What belongs to no pipeline."""
    state = generator.state_dict()
    return {name: tensor.cpu().contiguous() for name, tensor in state.items() if ".pipeline." not in name}


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> SentenceTransformer:
    """Read the pipeline that `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: a file is missing or damaged.
    """
    model = stock.read(folder, {}, device, truncate_dim)
    first, second = _checked(folder, values)["languages"]
    path = file_of(folder, averaging.tokenizer_file(SentencePieceTokenizer.kind))
    try:
        tokenizer = SentencePieceTokenizer(path.read_bytes(), **values["tokenizer_options"])
    except (SettingsError, *DAMAGED) as error:
        raise ModelDirectoryError(f"{path}: not the vocabulary of this model ({one_line(error)})") from error
    return GenerativeEncoder.of(model, (first, second), tokenizer, folder, values)


def _checked(folder: Path, values: dict[str, Any]) -> dict[str, Any]:
    """What `st_paragram.json` says, with the decoders' sizes as they must be."""
    with configured(folder):
        first, second = values["languages"]
        if not (isinstance(first, str) and isinstance(second, str)):
            raise ValueError(f"languages are {short(values['languages'])}")
        for language in (first, second):
            if not language.replace("_", "").replace("-", "").isalnum():
                raise ValueError(f"language is {short(language)}")
        shape = pydantic.TypeAdapter(DecoderShape).validate_python(values["decoders"])
        transformer = shape.transformer
        if transformer.heads < 1 or transformer.dim % transformer.heads or not 0 <= transformer.dropout < 1:
            raise ValueError(f"heads are {transformer.heads}, and dropout is {transformer.dropout}")
        sides: list[Side] = [side for side in SIDES if side in values["language_encoders"]]
    return {"languages": (first, second), "decoders": shape, "sides": sides}


def _read_generator(folder: Path, values: dict[str, Any], model: GenerativeEncoder) -> BilingualGenerator:
    checked, path = _checked(folder, values), file_of(folder, _DECODERS)
    languages = {
        side: stock.read(folder / f"language-{model.languages[SIDES.index(side)]}", {}, str(model.device), None)
        for side in checked["sides"]
    }
    with refused(ModelDirectoryError, path, "not the decoders of this model", "save it again", SafetensorError):
        _check_sizes(path, checked["decoders"])
        special, vocabulary = special_ids(model.sentencepiece), len(model.sentencepiece)
        generator = BilingualGenerator(model, languages, vocabulary, special, checked["decoders"])
        _fill(generator, load_file(path))
    return generator


def _check_sizes(path: Path, shape: DecoderShape) -> None:
    """Compare sizes with the weights, before anything of such a size is made."""
    with safe_open(path, "pt") as file:
        extents = [max(file.get_slice(name).get_shape(), default=1) for name in file.keys()]  # noqa: SIM118 - no mapping
    transformer = shape.transformer
    sizes = (transformer.dim, transformer.ffn_dim, transformer.max_length, shape.latent_dim)
    if not 0 < transformer.layers <= len(extents) or max(sizes) > max(extents, default=0) or min(sizes) < 1:
        raise ValueError("sizes that the weights do not have")


def _fill(generator: BilingualGenerator, saved: dict[str, torch.Tensor]) -> None:
    found = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    if found != {name: tuple(tensor.shape) for name, tensor in _own_tensors(generator).items()}:
        raise ValueError("other tensors than this model has")
    if not all(tensor.dtype == torch.float32 and is_finite(tensor) for tensor in saved.values()):
        raise ValueError("other numbers than finite ones of float32")
    generator.load_state_dict(saved, strict=False)


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights from a folder that `write` made.

    Raises:
        ModelDirectoryError: it cannot be read, or holds another pipeline.
    """
    stock.fill(into, stock.read(folder, {}, "cpu", None), folder)
