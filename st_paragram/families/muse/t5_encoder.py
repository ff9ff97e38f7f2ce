"""The transformer of a dual encoder out of stock parts: T5's encoder, a mean over its layers, the mean of the states.

T5's layers are pre-norm and know positions only relative to each other: its first states are the rows of the embedding
table and nothing else. So the mean of states begins as the bag of a text's pieces, as an averaging model has it, and
what the layers add is weighed by a number that is learned. Lengths beyond those of training have positions, too.
"""

from __future__ import annotations

import tempfile
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


def t5_modules(
    tokenizer: Tokenizer, shape: TransformerShape, keep_bag: bool = True, table: Tensor | None = None
) -> list[nn.Module]:
    """New modules from text, with an end of sentence behind it, to the mean of states, float (B, dim), not normalized.

    Args:
        tokenizer: Of sentencepiece.
        shape: Of the transformer.
        keep_bag: Begin with the mean of the embeddings; without, the states of the last layer alone are averaged.
        table: Embeddings of pieces to begin with, float (V, dim); T5's own if None.
    """
    from transformers import T5Config, T5EncoderModel

    if shape.dim % shape.heads:
        raise SettingsError(f"dim is {shape.dim} and heads {shape.heads}; dim must be a multiple of heads")
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
    with tempfile.TemporaryDirectory() as folder, no_progress_bars():  # of which sentence-transformers makes its module
        T5EncoderModel(config).save_pretrained(folder)
        stock_tokenizer(tokenizer, special, shape.max_length).save_pretrained(folder)
        transformer: Any = Transformer(folder, max_seq_length=shape.max_length)
    if table is not None:
        with torch.no_grad():
            rows = transformer.model.shared.weight.copy_(table)
            # An empty text is its end alone: short enough not to count in others, but with a direction.
            rows[special.end].normal_(std=0.01)
    modules: list[nn.Module] = [transformer]
    if keep_bag:
        weights = torch.zeros(shape.layers + 1)
        weights[0] = 1.0
        modules.append(WeightedLayerPooling(shape.dim, shape.layers, 0, nn.Parameter(weights)))
    return [*modules, Pooling(shape.dim, pooling_mode="mean")]
