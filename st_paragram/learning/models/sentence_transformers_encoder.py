"""Averaging models as SentenceTransformers with a fast `encode`; conversion of inputs to lists of
texts.

The name of this file matters: KeyBERT and BERTopic recognize a SentenceTransformer by
"sentence_transformers" in the path of its class, and otherwise silently load another model.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, KeysView, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from sentence_transformers.util import quantize_embeddings
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from st_paragram.core.embedding_table import for_any_reader
from st_paragram.core.encoding.embed import BATCH_SIZE, as_list, embed, list_of_texts
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import SettingsError
from st_paragram.learning.models import averaging
from st_paragram.learning.modules.compact_embedding import CompactEmbedding, in_numpy
from st_paragram.learning.modules.mean_pool import MeanPool, is_plain
from st_paragram.learning.modules.token_embedding import TokenEmbedding

NETWORK_BATCH_SIZE = 128  # results of a network's layers for so many texts fit in the cache

_host_logger = logging.getLogger(SentenceTransformer.__module__)
_Method = TypeVar("_Method", bound=Callable[..., Any])
# Attributes that change what a module does: hooks, and replaced methods.
_EXTRAS = ("_forward_hooks", "_forward_pre_hooks", "_compiled_call_impl", "forward", "preprocess")
# Hooks on all modules; torch 2.6 has no function to list them.
_GLOBAL_HOOKS = [
    hooks
    for name, hooks in vars(torch_module).items()
    if name.startswith("_global_") and isinstance(hooks, dict)
]


def batch_size(model: object) -> int:
    """Return the texts per forward pass: many for a mean of embeddings, which only reads memory,
    fewer for others.
    """
    if not isinstance(model, SentenceTransformer):
        return NETWORK_BATCH_SIZE
    mean = averaging.averaging_embedding(model) is not None or isinstance(model[0], StaticEmbedding)
    return BATCH_SIZE if mean else getattr(model[0], "texts_at_once", NETWORK_BATCH_SIZE)


def listed(inputs: Any) -> tuple[Any, bool]:
    """Convert columns, arrays and other iterables to a list, keep other inputs; also return whether
    all are strings.

    A row that is None, NaN, a number, bytes or the like is refused with its position from 0, and so
    is a whole table.
    """
    if isinstance(inputs, np.ndarray) and (inputs.ndim != 1 or inputs.dtype.kind not in "UO"):
        return inputs, False
    unordered = isinstance(inputs, Mapping | Set) and not isinstance(inputs, KeysView)
    if unordered or isinstance(inputs, str | bytes | Tensor) or not hasattr(inputs, "__iter__"):
        return inputs, False
    rows = as_list(inputs)
    # ids, messages, other modalities
    kinds, others = set(map(type, rows)), (list, tuple, Mapping, np.ndarray, Tensor)
    texts = all(issubclass(kind, str) for kind in kinds)
    if texts or not all(issubclass(kind, (str, *others)) for kind in kinds):
        rows = list_of_texts(rows)  # names the row that is not a string
    return rows, texts and bool(rows)


def pipeline(
    embedding: TokenEmbedding,
    device: str | None = None,
    normalize: bool = False,
    **settings: Any,
) -> ParagramEncoder:
    """Make an averaging model: `embedding`, then `MeanPool`, and with `normalize` a `Normalize`
    module.

    `settings` are further arguments of `SentenceTransformer`, e.g. `prompts`; the default
    similarity is cosine.

    Example:
        >>> from st_paragram import PairStore, SentencePieceEmbedding, pipeline
        >>> model = pipeline(SentencePieceEmbedding(PairStore("data/en-es.h5").tokenizer(), 64),
        ...     normalize=True)
        >>> len(model)
        3
    """
    modules: list[nn.Module] = [embedding, MeanPool(embedding.embedding_dimension)]
    modules += [Normalize()] if normalize else []
    return ParagramEncoder(
        modules=modules, device=device, **({"similarity_fn_name": "cosine"} | settings)
    )


def with_unit_vectors(model: SentenceTransformer) -> SentenceTransformer:
    """Return an averaging model that shares all of `model` and scales every embedding to length 1;
    refuse others.
    """
    embedding = averaging.embedding_of(model)
    if averaging.gives_unit_vectors(model):
        return model
    return pipeline(
        embedding, str(model.device), normalize=True, **averaging.pipeline_settings(model)
    )


@dataclass
class _Call:
    """Arguments of `SentenceTransformer.encode`, in order, with the two that `encode_query` may
    add.
    """

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
        """Whether plain embeddings are requested: on the CPU, in this process, with a known prompt
        or none.
        """
        return (
            self.output_value == "sentence_embedding"
            and self.pool is None
            and (self.device is None or str(self.device) == "cpu")
            and self.precision in (None, "float32", "int8", "uint8", "binary", "ubinary")
            and type(self.batch_size) is int
            and self.batch_size > 0
            and (self.prompt_name is None or (self.prompt is None and self.prompt_name in prompts))
        )

    def converted(self, rows: Tensor) -> Any:
        """Convert embeddings (N, D) to the requested precision and container."""
        result: Any = rows
        if self.precision not in (None, "float32"):
            result = torch.from_numpy(
                quantize_embeddings(rows, precision=cast("Any", self.precision))
            )
        if not self.convert_to_tensor:
            result = result.numpy() if self.convert_to_numpy else list(result)
        return result[0] if isinstance(self.inputs, str) else result


def _in_larger_batches(method: _Method) -> _Method:
    """Return the method with BATCH_SIZE as the default of its argument `batch_size`."""

    @functools.wraps(method)
    def in_larger_batches(*args: Any, **kwargs: Any) -> Any:
        given = len(args) > 4  # self, inputs, prompt_name, prompt, batch_size
        return method(*args, **(kwargs if given else {"batch_size": BATCH_SIZE} | kwargs))

    return cast("_Method", in_larger_batches)


def _in_language(tokenizer: Tokenizer, language: str) -> BilingualTokenizer:
    """Return the tokenizer of one language; refuse a tokenizer with one vocabulary."""
    if not isinstance(tokenizer, BilingualTokenizer):
        raise SettingsError(
            f"language is {language!r}, but the model has one vocabulary; leave the language out"
        )
    return tokenizer.in_language(language)


class ParagramEncoder(SentenceTransformer):
    """A SentenceTransformer of `TokenEmbedding`, `MeanPool` and optionally `Normalize` with a fast
    `encode`.

    `encode` takes and returns the same as `SentenceTransformer.encode`. Texts become ids and ids
    become rows of the result, batch by batch, in order, on all threads that torch uses. The base
    class handles all other requests (other inputs or outputs, a GPU, a pool of processes, hooks,
    other modules), in batches of the same size.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-mini", device="cpu")
        >>> model.encode(["a sentence", "another one"]).shape
        (2, 256)
    """

    encode_query = _in_larger_batches(SentenceTransformer.encode_query)
    encode_document = _in_larger_batches(SentenceTransformer.encode_document)

    if not TYPE_CHECKING:  # type checkers see the overloads of the base class

        @_in_larger_batches
        @functools.wraps(SentenceTransformer.encode)
        def encode(self, *args, language=None, **kwargs):  # noqa: ANN001, ANN002, ANN003, ANN201, D102 - as in the base
            try:
                call = _Call(*args, **kwargs)
            except TypeError:  # an unknown or wrong argument: leave it to the base class
                return super().encode(*args, **kwargs)
            call.inputs, are_texts = listed(call.inputs)
            tokens = self._plain_embedding() if are_texts or isinstance(call.inputs, str) else None
            if tokens is None or not call.is_plain(self.prompts):
                kwargs.pop("inputs", None)
                if language is not None:
                    return self.in_language(language).encode(call.inputs, *args[1:], **kwargs)
                return super().encode(call.inputs, *args[1:], **kwargs)
            tokenizer = (
                tokens.tokenizer if language is None else _in_language(tokens.tokenizer, language)
            )
            if any(module.training for module in (self, *self.children())):
                self.eval()
            bar = call.show_progress_bar
            name = self.default_prompt_name if call.prompt_name is None else call.prompt_name
            with torch.inference_mode():
                rows = embed(
                    [call.inputs] if isinstance(call.inputs, str) else call.inputs,
                    tokenizer,
                    in_numpy(tokens.embedding),
                    unit_vectors=averaging.gives_unit_vectors(self),
                    normalized=call.normalize_embeddings,
                    truncate_dim=(
                        self.truncate_dim if call.truncate_dim is None else call.truncate_dim
                    ),
                    prompt=self.prompts.get(name) if call.prompt is None else call.prompt,
                    batch_size=call.batch_size,
                    threads=tokens.num_threads or torch.get_num_threads(),
                    progress=(
                        _host_logger.getEffectiveLevel() in (logging.INFO, logging.DEBUG)
                        if bar is None
                        else bar
                    ),
                )
                return call.converted(torch.from_numpy(rows))

    def in_language(self, language: str) -> ParagramEncoder:
        """Return the model for one of its languages with separate vocabularies; it shares the
        embedding matrix.
        """
        embedding = averaging.embedding_of(self)
        tokenizer = _in_language(embedding.tokenizer, language)
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
        """Save for plain sentence-transformers and `st_paragram.load`; `save_pretrained` and
        `push_to_hub` call it.

        Weights are always safetensors. An int4 table is saved as int8 with the same numbers, which
        plain sentence-transformers can read; `st_paragram.save` keeps int4. The base class saves
        pipelines of other modules.
        """
        embedding = averaging.averaging_embedding(self)
        if path is None or embedding is None:
            return super().save(
                path, model_name, create_model_card, train_datasets, safe_serialization
            )
        averaging.write(self, Path(path), for_any_reader(in_numpy(embedding.embedding).kind))
        if create_model_card:
            self._create_model_card(path, model_name, train_datasets)

    def _plain_embedding(self) -> TokenEmbedding | None:
        """Return the first module if this is a model made by `pipeline`, on the CPU and without
        changes.
        """
        embedding = averaging.averaging_embedding(self)
        if embedding is None or not is_plain(embedding.embedding):
            return None
        inherited = all(
            getattr(type(self), each) is getattr(SentenceTransformer, each) for each in _EXTRAS[-2:]
        )
        extras = any(
            module.__dict__.get(name) for module in (self, *self.children()) for name in _EXTRAS
        )
        elsewhere = getattr(self, "_distributed_inference", None) is not None
        return embedding if inherited and not (extras or elsewhere or any(_GLOBAL_HOOKS)) else None
