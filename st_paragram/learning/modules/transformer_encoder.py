"""A transformer sentence encoder from stock parts: MarianEncoder, mean of states, linear map.

Its layers are those of EMNLP 2020: post-norm, ReLU, sinusoidal positions, embeddings times the root
of their dimension. A sentence is its pieces and an end-of-sentence id, whose state is part of the
mean. A pipeline of these parts is saved like sentence-transformers' own modules, and opens there
without plugin or flag.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pydantic
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from torch import Tensor, nn
from transformers.utils import logging

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.stock import convert_tokenizer
from st_paragram.errors import SettingsError

# limit for model files from elsewhere; more layers would be built before an error
MOST_LAYERS = 1000
# Noncharacters of Unicode, which no text contains, stand for padding and end in `tokenizer.json`.
_PAD = "\ufdd2"
_END = "\ufdd3"


@dataclass(frozen=True)
class TransformerShape:
    """The sizes of a transformer."""

    dim: int  # dimensions of a state
    layers: Annotated[int, pydantic.Field(le=MOST_LAYERS)]
    heads: int  # attention heads, which divide `dim` among them
    ffn_dim: int  # units of a feed-forward network
    dropout: float = 0.0
    # positions, including the end of sentence; longer sentences are truncated
    max_length: int = 512


@dataclass(frozen=True)
class SpecialIds:
    """The ids that are not text."""

    pad: int  # padding
    end: int  # the end of a sentence, and the decoder's first input


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Return the ids of sentencepiece's `<s>`, used as padding, and of `</s>`, the end."""
    if not isinstance(tokenizer, SentencePieceTokenizer):
        raise SettingsError(
            f"a transformer reads sentencepiece ids, not {tokenizer.kind} ids; prepare the text"
            " again"
        )
    special = SpecialIds(tokenizer.processor.bos_id(), tokenizer.processor.eos_id())
    if special.pad < 0 or special.end < 0:
        raise SettingsError(
            "the vocabulary lacks <s> or </s>; train it with sentencepiece's defaults for them"
        )
    return special


def transformer_pipeline(
    tokenizer: Tokenizer, shape: TransformerShape, latent_dim: int, device: str | None = None
) -> SentenceTransformer:
    """Make a new encoder of the modules `Transformer`, `Pooling` (mean) and `Dense` (no bias).

    Linear maps are initialized with Xavier's uniform distribution and biases of 0, embeddings with
    N(0, 1 / dim). The tokenizer is sentencepiece with `<s>` and `</s>`; `latent_dim` is the
    dimension of sentence embeddings.
    """
    from transformers import MarianConfig
    from transformers.models.marian.modeling_marian import MarianEncoder

    special = special_ids(tokenizer)
    config = MarianConfig(
        vocab_size=len(tokenizer),
        d_model=shape.dim,
        encoder_layers=shape.layers,
        decoder_layers=0,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.ffn_dim,
        decoder_ffn_dim=shape.ffn_dim,
        dropout=shape.dropout,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=shape.max_length,
        pad_token_id=special.pad,
        eos_token_id=special.end,
        decoder_start_token_id=special.end,
        forced_eos_token_id=None,
    )
    with tempfile.TemporaryDirectory() as folder, no_progress_bars():
        MarianEncoder(config).save_pretrained(folder)
        stock_tokenizer(tokenizer, special, shape.max_length).save_pretrained(folder)
        transformer = Transformer(folder, max_seq_length=shape.max_length)
    encoder: Any = transformer.model
    encoder.embed_positions.requires_grad_(False)  # loading has undone this
    initialise(encoder, special)
    dense = Dense(shape.dim, latent_dim, bias=False, activation_function=nn.Identity())
    nn.init.xavier_uniform_(dense.linear.weight)
    modules: list[nn.Module] = [transformer, Pooling(shape.dim, pooling_mode="mean"), dense]
    return SentenceTransformer(modules=modules, device=device, similarity_fn_name="cosine")


def stock_tokenizer(tokenizer: Tokenizer, special: SpecialIds, max_length: int) -> Any:
    """Convert a sentencepiece tokenizer to a `PreTrainedTokenizerFast`.

    It appends an end of sentence to each text, and truncates longer texts, including the end, to
    `max_length`.
    """
    from tokenizers import Tokenizer as StockTokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    if tokenizer.options["segmentation"] != "none":
        raise SettingsError(
            "texts are segmented by jieba, which a stock tokenizer cannot do; prepare them without"
            " --segment jieba"
        )
    converted = convert_tokenizer(tokenizer)  # type: ignore[arg-type] # as `special_ids` found
    values = json.loads(converted.to_str())
    vocabulary = values["model"]["vocab"]
    vocabulary[special.pad][0] = _PAD
    vocabulary[special.end][0] = _END
    stock = StockTokenizer.from_str(json.dumps(values))
    stock.post_processor = TemplateProcessing(
        single=f"$A {_END}", pair=f"$A {_END} $B {_END}", special_tokens=[(_END, special.end)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=stock,
        pad_token=_PAD,
        eos_token=_END,
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
    )


def initialise(module: nn.Module, special: SpecialIds) -> None:
    """Initialize a transformer.

    Linear maps get Xavier's uniform distribution, embeddings N(0, 1 / dim). Queries, keys and
    values are initialized like one joint matrix, as in fairseq: its fan-out is three times as
    large, so the range is smaller by the root of 2. The row of `pad` becomes zero. Position tables,
    which are not trained, are not changed.
    """
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            gain = 0.5**0.5 if name.endswith((".q_proj", ".k_proj", ".v_proj")) else 1.0
            nn.init.xavier_uniform_(part.weight, gain)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding) and part.weight.requires_grad:
            nn.init.normal_(part.weight, std=part.embedding_dim**-0.5)
            with torch.no_grad():
                part.weight[special.pad].zero_()


def pooled_states(pipeline: SentenceTransformer, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the mean states of a `SentenceBatch`, float (B, dim), before the linear map."""
    encoder: Any = pipeline[0].model
    states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    weights = mask.to(states.dtype)
    return torch.bmm((weights / weights.sum(1, keepdim=True))[:, None], states)[:, 0]


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Hide transformers' progress bars for reading and writing weights within the block."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
