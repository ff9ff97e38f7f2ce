"""The transformer of a dual encoder from stock parts: T5's encoder and two means.

The means are over its layers and over the states.

T5's layers are pre-norm and use only relative positions: its first states are exactly the rows of
the embedding matrix. So the mean of the first states is the bag of a text's pieces, as in an
averaging model, and the contribution of the layers has a learned weight. Texts longer than those in
training also have valid positions.
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import (
    Pooling,
    Transformer,
    WeightedLayerPooling,
)
from torch import Tensor, nn

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.learning.modules.transformer_encoder import (
    TransformerShape,
    no_progress_bars,
    special_ids,
    stock_tokenizer,
)

# of T5's relative positions
_BUCKETS = 32
_LAST_DISTANCE = 128


def t5_modules(
    tokenizer: Tokenizer,
    shape: TransformerShape,
    keep_bag: bool = True,
    table: Tensor | None = None,
) -> list[nn.Module]:
    """Make new modules from text to the mean of states, float (B, dim), unnormalized.

    Each text is followed by an end of sentence.

    Args:
        tokenizer: Sentencepiece tokenizer.
        shape: Sizes of the transformer.
        keep_bag: Include the mean of the embeddings; otherwise only the states of the last layer
            are averaged.
        table: Initial embeddings of pieces, float (V, dim); None: T5's initialization.
    """
    from transformers import T5Config, T5EncoderModel

    special = special_ids(tokenizer)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=shape.dim,
        d_kv=shape.dim // shape.heads,
        d_ff=shape.ffn_dim,
        num_layers=shape.layers,
        num_heads=shape.heads,
        relative_attention_num_buckets=_BUCKETS,
        relative_attention_max_distance=_LAST_DISTANCE,
        dropout_rate=shape.dropout,
        feed_forward_proj="relu",
        is_encoder_decoder=False,
        use_cache=False,
        pad_token_id=special.pad,
        eos_token_id=special.end,
        output_hidden_states=keep_bag,
    )
    # to load sentence-transformers' module from
    with tempfile.TemporaryDirectory() as folder, no_progress_bars():
        T5EncoderModel(config).save_pretrained(folder)
        stock_tokenizer(tokenizer, special, shape.max_length).save_pretrained(folder)
        transformer: Any = Transformer(folder, max_seq_length=shape.max_length)
    if table is not None:
        with torch.no_grad():
            weights = transformer.model.shared.weight.copy_(table)
            # An empty text has only its end: too short to matter in other texts, but with a
            # direction.
            weights[special.end].normal_(std=0.01)
    modules: list[nn.Module] = [transformer]
    if keep_bag:
        layer_weights = torch.zeros(shape.layers + 1)
        layer_weights[0] = 1.0
        pooling = WeightedLayerPooling(
            shape.dim,
            num_hidden_layers=shape.layers,
            layer_start=0,
            layer_weights=nn.Parameter(layer_weights),
        )
        modules.append(pooling)
    modules.append(Pooling(shape.dim, pooling_mode="mean"))
    return modules
