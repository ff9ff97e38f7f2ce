"""The transformer of a dual encoder out of stock parts: T5's encoder, a mean over its layers, the mean of the states.

T5's layers are pre-norm and know positions only relative to each other: its first states are the rows of the embedding
table and nothing else. So the mean of states begins as the bag of a text's pieces, as an averaging model has it, and
what the layers add is weighed by a number that is learned. Lengths beyond those of training have positions, too.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer, WeightedLayerPooling
from torch import Tensor, nn

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.learning.modules.transformer_encoder import (
    TransformerShape,
    no_progress_bars,
    special_ids,
    stock_tokenizer,
)

_DISTANCES, _FARTHEST = 32, 128  # T5's buckets of relative positions, and the distance from which all are one


def t5_modules(tokenizer: Tokenizer, shape: TransformerShape, keep_bag: bool = True) -> list[nn.Module]:
    """New modules from text to the mean of states, float (B, dim), not normalized.

    Args:
        tokenizer: of sentencepiece; an end of sentence follows each text.
        shape: of the transformer.
        keep_bag: begin with the mean of the embeddings; without, the states of the last layer alone are averaged.

    Raises:
        SettingsError: another tokenizer, one without `<s>` and `</s>`, or heads that do not divide the states.
        ModelDirectoryError: a tokenizer that cannot become a `tokenizer.json`.
    """
    if shape.dim % shape.heads:
        raise SettingsError(f"dim is {shape.dim} and heads {shape.heads}; dim must be a multiple of heads")
    with tempfile.TemporaryDirectory() as folder, no_progress_bars():
        _write_untrained(Path(folder), tokenizer, shape, keep_bag)
        modules: list[nn.Module] = [Transformer(folder, max_seq_length=shape.max_length)]
    if keep_bag:
        weights = torch.zeros(shape.layers + 1)
        weights[0] = 1.0
        modules.append(WeightedLayerPooling(shape.dim, shape.layers, 0, nn.Parameter(weights)))
    return [*modules, Pooling(shape.dim, pooling_mode="mean")]


def _write_untrained(folder: Path, tokenizer: Tokenizer, shape: TransformerShape, keep_bag: bool) -> None:
    """The files that sentence-transformers makes its module of."""
    from transformers import T5Config, T5EncoderModel

    special = special_ids(tokenizer)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=shape.dim,
        d_kv=shape.dim // shape.heads,
        d_ff=shape.ffn_dim,
        num_layers=shape.layers,
        num_heads=shape.heads,
        relative_attention_num_buckets=_DISTANCES,
        relative_attention_max_distance=_FARTHEST,
        dropout_rate=shape.dropout,
        feed_forward_proj="relu",
        is_encoder_decoder=False,
        use_cache=False,
        pad_token_id=special.pad,
        eos_token_id=special.end,
        output_hidden_states=keep_bag,
    )
    T5EncoderModel(config).save_pretrained(folder)
    stock_tokenizer(tokenizer, special, shape.max_length).save_pretrained(folder)


def is_t5(module: nn.Module) -> bool:
    """Whether a module is the first of those that `t5_modules` makes."""
    return isinstance(module, Transformer) and type(module.model).__name__ == "T5EncoderModel"


def table_of(transformer: nn.Module) -> Tensor:
    """The embedding table of the first module, float (V, dim)."""
    model: Any = transformer.model
    table: Tensor = model.shared.weight
    return table
