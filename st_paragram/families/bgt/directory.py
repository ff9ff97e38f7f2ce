"""The files of a generative model: a stock pipeline, together with the languages' pipelines and the decoders.

    model.safetensors, modules.json, ...     the semantic encoder; stock sentence-transformers opens it
    language-en/, language-es/               the languages' encoders, pipelines of the same kind
    decoders/model.safetensors               decoders, and the maps to log variances
    sentencepiece.model, st_paragram.json    for decoders: vocabulary, sizes, which there are

`st_paragram.load` gives a `GenerativeEncoder`, which reads the files next to the pipeline when needed.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.directory import Configuration, file_of, write_configuration
from st_paragram.core.encoding.table import TableType
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import DAMAGED, ModelDirectoryError, SettingsError, one_line
from st_paragram.families.bgt import generator_files
from st_paragram.families.bgt.bilingual_generator import GaussianEncoder

# Pickles of earlier versions name both here.
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder, _Beside  # noqa: F401
from st_paragram.families.bgt.settings import SIDES
from st_paragram.learning.models import stock

#: The name of the architecture in `st_paragram.json`.
GENERATIVE = "generative"


def holds(model: SentenceTransformer) -> bool:
    """Whether a pipeline is a generative model's."""
    return isinstance(model, GenerativeEncoder)


def check(model: SentenceTransformer) -> None:
    """Nothing to refuse: a generative model is built from what can be written."""


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the pipeline and the files next to it; arguments and errors as of `stock.write`."""
    assert isinstance(model, GenerativeEncoder)
    generator, tokenizer = model.generator, model.sentencepiece
    stock.write(model, folder, dtype, truncate_dim, GENERATIVE)
    for side, language in zip(SIDES, model.languages, strict=True):
        if side in generator.languages:
            stock.write(cast("GaussianEncoder", generator.languages[side]).pipeline, folder / f"language-{language}")
    (folder / generator_files.DECODERS).parent.mkdir(exist_ok=True)
    save_file(generator_files.own_tensors(generator), folder / generator_files.DECODERS)
    (folder / model_files.tokenizer_file(tokenizer.kind)).write_bytes(tokenizer.content)
    values = {
        "languages": list(model.languages),
        "language_encoders": [side for side in SIDES if side in generator.languages],
        "tokenizer_options": tokenizer.options,
        "decoders": asdict(generator.shape),
    }
    write_configuration(folder, Configuration(GENERATIVE, values))


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> SentenceTransformer:
    """Read the pipeline that `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: a file is missing or damaged.
    """
    model = stock.read(folder, {}, device, truncate_dim)
    first, second = generator_files.checked(folder, values)["languages"]
    path = file_of(folder, model_files.tokenizer_file(SentencePieceTokenizer.kind))
    try:
        tokenizer = SentencePieceTokenizer(path.read_bytes(), **values["tokenizer_options"])
    except (SettingsError, *DAMAGED) as error:
        raise ModelDirectoryError(f"{path}: not the vocabulary of this model ({one_line(error)})") from error
    return GenerativeEncoder.of(model, (first, second), tokenizer, folder, values)


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights from a folder that `write` made.

    Raises:
        ModelDirectoryError: it cannot be read, or holds another pipeline.
    """
    stock.fill(into, stock.read(folder, {}, "cpu", None), folder)
