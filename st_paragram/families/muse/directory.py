"""The files of a dual encoder: a stock pipeline that ends with `Router`, and its heads.

    model.safetensors, modules.json, ...     stock sentence-transformers opens it: encode, encode_query, encode_document
    heads.safetensors                        what contexts of answers go through, and the classifier of inference
    convolution.safetensors                  of a CNN: its weights as `ConvolutionEncoder` has them
    sentencepiece.model, st_paragram.json    vocabulary, sizes, what it was trained for

`st_paragram.load` gives a `DualEncoder`. A transformer's is the stock pipeline; a CNN's reads texts without filling
them up. Both readers give the same vectors for texts of known pieces.

Towers over a finished encoder are kept in the same way, without a vocabulary: see `towers_directory`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pydantic
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import nn

from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.directory import (
    Configuration,
    configured,
    damaged,
    file_of,
    write_configuration,
)
from st_paragram.core.encoding.table import TableType
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import DAMAGED, ModelDirectoryError, SettingsError, one_line
from st_paragram.families.muse import towers_directory
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder

# Pickles of earlier versions name all of them here.
from st_paragram.families.muse.sentence_transformers_encoder import (  # noqa: F401
    ConvolutionShape,
    DualEncoder,
    DualEncoderValues,
    WithClassifier,
    _Beside,
)
from st_paragram.families.muse.sentence_transformers_towers import EncoderWithTowers
from st_paragram.families.muse.stock_convolution import read_convolution, stock_modules, write_convolution
from st_paragram.families.muse.t5_encoder import is_t5
from st_paragram.families.muse.towers import towers
from st_paragram.families.muse.towers_directory import DUAL_ENCODER, design, read_heads, write_heads
from st_paragram.learning.models import stock
from st_paragram.learning.modules.token_embedding import TokenEmbedding, token_embedding


def holds(model: SentenceTransformer) -> bool:
    """Whether a pipeline is a dual encoder."""
    return isinstance(model, DualEncoder | EncoderWithTowers)


def check(model: SentenceTransformer) -> None:
    """Nothing to refuse: a dual encoder is built from what can be written."""


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the pipeline and the files next to it; arguments and errors as of `stock.write`."""
    if isinstance(model, EncoderWithTowers):
        return towers_directory.write(model, folder, dtype, truncate_dim)
    assert isinstance(model, DualEncoder)
    encoder = model[1]
    pipeline: SentenceTransformer = model
    if isinstance(encoder, ConvolutionEncoder):
        pipeline = _stock_pipeline(model, encoder)
    stock.write(pipeline, folder, dtype, truncate_dim, DUAL_ENCODER)
    if isinstance(encoder, ConvolutionEncoder):
        write_convolution(encoder, folder)
    write_heads(model.heads, folder)
    (folder / model_files.tokenizer_file(model.sentencepiece.kind)).write_bytes(model.sentencepiece.content)
    write_configuration(folder, Configuration(DUAL_ENCODER, asdict(model.values)))


def _stock_pipeline(model: DualEncoder, encoder: ConvolutionEncoder) -> SentenceTransformer:
    """The same weights and settings in sentence-transformers' own modules, on the CPU."""
    settings = {name: getattr(model, name) for name in model_files.PIPELINE_SETTINGS}
    with torch.random.fork_rng(devices=[]):  # a checkpoint must not move the generator that training draws from
        modules = stock_modules(cast("TokenEmbedding", model[0]), encoder, model.values.max_length)
        router = _copied(cast("Router", model[-1]), model.values.dim)
        return SentenceTransformer(modules=[*modules, router], device="cpu", **settings)


def _copied(router: Router, dim: int) -> Router:
    copy = towers(dim)
    copy.load_state_dict({name: tensor.cpu() for name, tensor in router.state_dict().items()})
    return copy


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> SentenceTransformer:
    """Read what `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: a file is missing or damaged, or does not fit the others.
    """
    if values.get("encoder") == "finished":
        return towers_directory.read(folder, values, device, truncate_dim)
    stored = _checked(folder, values)
    path = file_of(folder, model_files.tokenizer_file(SentencePieceTokenizer.kind))
    try:
        tokenizer = SentencePieceTokenizer(path.read_bytes(), **stored.tokenizer_options)
    except (SettingsError, *DAMAGED) as error:
        raise ModelDirectoryError(f"{path}: not the vocabulary of this model ({one_line(error)})") from error
    pipeline = stock.read(folder, {}, device, None)
    _check_fit(folder, pipeline, stored)
    modules = list(pipeline)
    if stored.convolution is not None:
        modules = [*_native_modules(folder, tokenizer, stored.dim, stored.convolution), pipeline[-1]]
    settings = {name: getattr(pipeline, name) for name in model_files.PIPELINE_SETTINGS}
    settings["truncate_dim"] = truncate_dim
    model = DualEncoder.of(modules, tokenizer, read_heads(folder, stored.dim), stored, device, **settings)
    model._model_card_text = pipeline._model_card_text
    model.eval()
    return model


def _checked(folder: Path, values: dict[str, Any]) -> DualEncoderValues:
    with configured(folder):
        stored = pydantic.TypeAdapter(DualEncoderValues).validate_python(values)
        if min(stored.dim, stored.max_length - 3, stored.context_length) < 1:
            raise ValueError(f"dim {stored.dim}, max_length {stored.max_length}, context {stored.context_length}")
        return replace(stored, tasks=tuple(stored.tasks))


def _check_fit(folder: Path, pipeline: SentenceTransformer, stored: DualEncoderValues) -> None:
    """Compare the stock pipeline with what `st_paragram.json` says."""
    if (stored.convolution is None) != is_t5(pipeline[0]) or pipeline.max_seq_length != stored.max_length:
        raise damaged(
            folder, f"convolution is {stored.convolution}, max_length {stored.max_length}: not the pipeline's"
        )
    last, dim = pipeline[-1], stored.dim
    if not isinstance(last, Router) or design(last) != design(towers(dim)):
        raise ModelDirectoryError(f"{folder}: its last module is not the towers of {dim} components; save it again")


def _native_modules(folder: Path, tokenizer: Tokenizer, dim: int, shape: ConvolutionShape) -> list[nn.Module]:
    with stock.reading(folder, "its modules cannot be made"):
        with torch.device("meta"):  # sizes of a stranger's making, which the weights may not have
            encoder = shape.encoder(dim)
        table = read_convolution(folder, encoder, len(tokenizer))
        return [token_embedding(tokenizer, weights=table), encoder]


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights, and those of its heads, from a folder that `write` made.

    Raises:
        ModelDirectoryError: it cannot be read, or holds another pipeline.
    """
    from st_paragram.core.encoding.directory import read_configuration

    stored = read(folder, read_configuration(folder).values, "cpu", None)
    assert isinstance(into, WithClassifier)
    assert isinstance(stored, WithClassifier)
    stock.fill(into, stored, folder)
    into.heads.load_state_dict(stored.heads.state_dict())
