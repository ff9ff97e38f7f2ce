"""Averaging models as SentenceTransformers with a fast `encode`.

The name of this file matters: KeyBERT and BERTopic recognize a SentenceTransformer by
"sentence_transformers" in the path of its class, and otherwise silently load another model.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, KeysView, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from sentence_transformers.util import quantize_embeddings
from torch import Tensor, nn

from st_paragram.core.arrays import Vectors
from st_paragram.core.embedding_table import for_any_reader
from st_paragram.core.encoding.embed import BATCH_SIZE, as_list, embed, list_of_texts
from st_paragram.core.quantization import quantize
from st_paragram.learning.models import averaging
from st_paragram.learning.modules.compact_embedding import CompactEmbedding, in_numpy
from st_paragram.learning.modules.mean_pool import MeanPool, is_plain
from st_paragram.learning.modules.token_embedding import TokenEmbedding

_host_logger = logging.getLogger(SentenceTransformer.__module__)
# Attributes that change what a module does: hooks, and replaced methods.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_compiled_call_impl", "forward", "preprocess")


def listed(inputs: Any) -> tuple[Any, bool]:
    """Convert columns, arrays and other iterables to a list; return whether all are strings.

    Other inputs are kept. A row that is None, NaN, a number, bytes or the like is refused with its
    position from 0, and so is a whole table.
    """
    if isinstance(inputs, np.ndarray):
        is_column = inputs.ndim == 1 and (inputs.dtype.kind in "UO" or not len(inputs))
        if not is_column:
            return inputs, False
    is_unordered = isinstance(inputs, Mapping | Set) and not isinstance(inputs, KeysView)
    if is_unordered or isinstance(inputs, str | bytes | Tensor) or not hasattr(inputs, "__iter__"):
        return inputs, False
    rows = as_list(inputs)
    kinds = {type(row) for row in rows}
    are_texts = all(issubclass(kind, str) for kind in kinds)
    # Others are ids, messages, and other modalities.
    accepted = (str, list, tuple, Mapping, np.ndarray, Tensor)
    if are_texts or not all(issubclass(kind, accepted) for kind in kinds):
        rows = list_of_texts(rows)  # names the row that is not a string
    return rows, are_texts


def encode_listed(encode: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Call `SentenceTransformer.encode`; no texts have embeddings (0, D) of the usual type."""
    if isinstance(inputs, list) and not inputs:
        # two different texts: one has no ranges for int8
        return encode(["", "a"], *args, **kwargs)[:0]
    return encode(inputs, *args, **kwargs)


def pipeline(
    embedding: TokenEmbedding,
    device: str | None = None,
    normalize: bool = False,
    **settings: Any,
) -> ParagramEncoder:
    """Make an averaging model: `embedding`, `MeanPool`, and with `normalize` a `Normalize` module.

    `settings` are further arguments of `SentenceTransformer`, e.g. `prompts`; the default
    similarity is cosine.

    Examples:
        >>> from st_paragram import PairStore, SentencePieceEmbedding, pipeline
        >>> model = pipeline(SentencePieceEmbedding(PairStore("data/en-es.h5").tokenizer(), 64),
        ...     normalize=True)
        >>> len(model)
        3
    """
    modules: list[nn.Module] = [embedding, MeanPool(embedding.embedding_dimension)]
    if normalize:
        modules.append(Normalize())
    settings.setdefault("similarity_fn_name", "cosine")
    return ParagramEncoder(modules=modules, device=device, **settings)


def with_unit_vectors(model: SentenceTransformer) -> SentenceTransformer:
    """Return an averaging model whose embeddings have length 1, with the weights of `model`."""
    embedding = averaging.embedding_of(model)
    if averaging.gives_unit_vectors(model):
        return model
    settings = averaging.pipeline_settings(model)
    return pipeline(embedding, str(model.device), normalize=True, **settings)


@dataclass
class _Call:
    """Arguments of `SentenceTransformer.encode`, in order; `encode_query` adds the last two."""

    inputs: Any
    prompt_name: str | None = None
    prompt: str | None = None
    batch_size: int = BATCH_SIZE
    show_progress_bar: bool | None = None
    output_value: str | None = "sentence_embedding"
    precision: str | None = "float32"
    convert_to_numpy: bool = True
    convert_to_tensor: bool = False
    device: Any = None
    normalize_embeddings: bool = False
    truncate_dim: int | None = None
    pool: Any = None
    chunk_size: int | None = None
    task: str | None = None
    processing_kwargs: Any = None

    def is_plain(self, prompts: Mapping[str, str]) -> bool:
        """Whether plain embeddings are requested, in this process, with a known prompt or none."""
        return (
            self.output_value == "sentence_embedding"
            and self.pool is None
            and (self.device is None or str(self.device) == "cpu")
            and self.precision in (None, "float32", "int8", "uint8", "binary", "ubinary")
            and type(self.batch_size) is int
            and self.batch_size > 0
            and (self.prompt_name is None or (self.prompt is None and self.prompt_name in prompts))
        )

    def converted(self, rows: Vectors) -> Any:
        """Convert embeddings (N, D) to the requested precision and container."""
        result: Any = rows
        if self.precision not in (None, "float32"):
            precision: Any = self.precision
            # sentence-transformers cannot quantize no rows
            quantized = quantize_embeddings if len(rows) else quantize
            result = quantized(rows, precision)
        with torch.inference_mode():  # as in the base class
            if self.convert_to_tensor:
                result = torch.from_numpy(result)
            elif not self.convert_to_numpy:
                result = list(torch.from_numpy(result))
            return result[0] if isinstance(self.inputs, str) else result


def _in_larger_batches(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with BATCH_SIZE as the default of its argument `batch_size`."""

    @functools.wraps(method)
    def in_larger_batches(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 5:  # self, inputs, prompt_name, prompt, batch_size
            kwargs.setdefault("batch_size", BATCH_SIZE)
        return method(*args, **kwargs)

    return in_larger_batches


class ParagramEncoder(SentenceTransformer):
    """An averaging model as a SentenceTransformer with a fast `encode`.

    `encode` takes and returns the same as `SentenceTransformer.encode`. Texts become ids and ids
    become rows of the result, batch by batch, in order, on all threads that torch uses. The base
    class handles all other requests (other inputs or outputs, a GPU, a pool of processes, hooks,
    other modules), in batches of the same size.

    Examples:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-mini", device="cpu")
        >>> model.encode(["a sentence", "another one"]).shape
        (2, 256)
    """

    if not TYPE_CHECKING:  # type checkers see the overloads of the base class
        encode_query = _in_larger_batches(SentenceTransformer.encode_query)
        encode_document = _in_larger_batches(SentenceTransformer.encode_document)

        @_in_larger_batches
        @functools.wraps(SentenceTransformer.encode)
        def encode(self, *args, language=None, **kwargs):  # noqa: ANN001, ANN002, ANN003, ANN201, D102 - as in the base
            try:
                call = _Call(*args, **kwargs)
            except TypeError:  # an unknown or wrong argument: leave it to the base class
                return super().encode(*args, **kwargs)
            call.inputs, are_texts = listed(call.inputs)
            embedding = self._plain_embedding()
            is_text = isinstance(call.inputs, str)
            if not (are_texts or is_text) or embedding is None or not call.is_plain(self.prompts):
                kwargs.pop("inputs", None)
                if language is not None:
                    return self.in_language(language).encode(call.inputs, *args[1:], **kwargs)
                return encode_listed(super().encode, call.inputs, *args[1:], **kwargs)
            tokenizer = embedding.tokenizer
            if language is not None:
                tokenizer = tokenizer.in_language(language)
            prompt = call.prompt
            if prompt is None:
                name = call.prompt_name
                prompt = self.prompts.get(self.default_prompt_name if name is None else name)
            truncate_dim = self.truncate_dim if call.truncate_dim is None else call.truncate_dim
            progress = call.show_progress_bar
            if progress is None:
                progress = _host_logger.getEffectiveLevel() in (logging.INFO, logging.DEBUG)
            if any(module.training for module in (self, *self._modules.values())):
                self.eval()
            rows = embed(
                [call.inputs] if is_text else call.inputs,
                tokenizer,
                in_numpy(embedding.embedding),
                unit_vectors=averaging.gives_unit_vectors(self),
                normalized=call.normalize_embeddings,
                truncate_dim=truncate_dim,
                prompt=prompt,
                batch_size=call.batch_size,
                threads=embedding.num_threads or torch.get_num_threads(),
                progress=progress,
            )
            return call.converted(rows)

    def in_language(self, language: str) -> ParagramEncoder:
        """Return the model for one of its languages, with the same embedding matrix."""
        embedding = averaging.embedding_of(self)
        tokenizer = embedding.tokenizer.in_language(language)
        table = embedding.embedding
        weights = table if isinstance(table, CompactEmbedding) else table.weight.data
        first = TokenEmbedding(tokenizer, weights=weights, dropout=embedding.dropout)
        first.num_threads = embedding.num_threads
        settings = averaging.pipeline_settings(self)
        settings["prompts"] = dict(self.prompts)
        return pipeline(first, str(self.device), averaging.gives_unit_vectors(self), **settings)

    def save(
        self,
        path: str,
        model_name: str | None = None,
        create_model_card: bool = True,
        train_datasets: list[str] | None = None,
        safe_serialization: bool = True,
    ) -> None:
        """Save for plain sentence-transformers and `st_paragram.load`.

        `save_pretrained` and `push_to_hub` call it. Weights are always safetensors. An int4 table
        is saved as int8 with the same numbers, which plain sentence-transformers can read;
        `st_paragram.save` keeps int4. The base class saves pipelines of other modules.
        """
        embedding = averaging.averaging_embedding(self)
        if path is None or embedding is None:
            super().save(path, model_name, create_model_card, train_datasets, safe_serialization)
            return
        kind = in_numpy(embedding.embedding).kind
        averaging.write(self, Path(path), for_any_reader(kind))
        if create_model_card:
            self._create_model_card(path, model_name, train_datasets)

    def _plain_embedding(self) -> TokenEmbedding | None:
        """Return the first module if kernels can read it, and nothing changes what modules do."""
        embedding = averaging.averaging_embedding(self)
        if embedding is None or not is_plain(embedding.embedding):
            return None
        for name in ("forward", "preprocess"):
            if getattr(type(self), name) is not getattr(SentenceTransformer, name):
                return None
        for module in (self, *self._modules.values()):
            attributes = vars(module)
            for name in _HOOKS:
                if attributes.get(name):
                    return None
        is_distributed = getattr(self, "_distributed_inference", None) is not None
        return None if is_distributed else embedding
