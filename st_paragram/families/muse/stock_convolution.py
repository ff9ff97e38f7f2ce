"""`TokenEmbedding` and `ConvolutionEncoder` out of sentence-transformers' modules alone, and the way back.

| module | what it does here |
|---|---|
| `Transformer` over OPT without layers | the table; in `WordEmbeddings`, `encode_query` would fail for want of tasks |
| `Pooling`, `Dense` | only with the bag: it goes past the convolutions as `cls_token_embeddings` |
| `CNN`, `Dense` | convolutions, and ReLU behind an identity map; one of each a layer |
| `Pooling` | the mean of all positions, behind the bag |
| `Dense` | the linear map, with `gate` and `bag_scale` multiplied in |

`CNN` knows no mask: see `convolution_encoder` why two ends of zeros, which the tokenizer appends, make it exact. Its
kernels have odd widths; those of width 2 and 4 have a zero more. Texts of known pieces have the same vectors with both.
Unknown pieces stay in the text here, whose row the table has; `TokenEmbedding` drops them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from sentence_transformers.sentence_transformer.modules import CNN, Dense, Pooling, Transformer
from torch import Tensor, nn

from st_paragram.core.encoding.directory import WEIGHTS_FILE
from st_paragram.errors import SettingsError
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.learning.models.tensors_file import read_tensors
from st_paragram.learning.modules import huge_pages
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.modules.transformer_encoder import no_progress_bars, special_ids, stock_tokenizer

#: The weights of `ConvolutionEncoder` by its own names, and the table's name in the stock reader's file.
CONVOLUTION_FILE, _TABLE = "convolution.safetensors", "decoder.embed_tokens.weight"
_TOKENS, _BAG = "token_embeddings", "cls_token_embeddings"


@torch.no_grad()
def stock_modules(embedding: TokenEmbedding, encoder: ConvolutionEncoder, max_length: int) -> list[nn.Module]:
    """The same computation in stock modules on the CPU, with copies of the weights.

    Rows of `<s>` and `</s>`, which no text has, are zero here: they stand for padding and ends. New modules draw from
    torch's random generator before they are filled.

    Args:
        embedding: with a sentencepiece tokenizer and a float32 table.
        encoder: behind it.
        max_length: longer texts are cut, the ends included.

    Returns:
        Modules from texts to `sentence_embedding`, float32 (B, D), not normalized.

    Raises:
        SettingsError: another tokenizer or table, or a vocabulary without `<s>` and `</s>`.
        ModelDirectoryError: a tokenizer that cannot become a `tokenizer.json`.
    """
    dim, channels = encoder.embedding_dimension, encoder.filters * len(encoder.widths)
    modules: list[nn.Module] = [_table(embedding, encoder.ends, max_length)]
    if encoder.keep_bag:
        modules += [Pooling(dim, "mean"), _filled(torch.eye(dim), None, nn.Identity(), "sentence_embedding", _BAG)]
    for layer in encoder.convolutions:
        modules += [_cnn(encoder, layer), _filled(torch.eye(channels), None, nn.ReLU(), _TOKENS, _TOKENS)]
    weight: Tensor = encoder.projection.weight
    bias: Tensor = encoder.projection.bias
    if encoder.keep_bag:
        bag = encoder.bag_scale * torch.eye(dim, device=weight.device)
        weight, bias = torch.cat([bag, encoder.gate * weight], 1), encoder.gate * bias
    modes = ("cls", "mean") if encoder.keep_bag else ("mean",)
    last = _filled(weight, bias, nn.Identity(), "sentence_embedding", "sentence_embedding")
    return [*modules, Pooling(channels, modes), last]


def _table(embedding: TokenEmbedding, ends: int, max_length: int) -> Transformer:
    """The tokenizer and the table: OPT adds positions to the rows, which are zero, and has no norm in this form."""
    from transformers import OPTConfig, OPTModel

    tokenizer = embedding.tokenizer
    special = special_ids(tokenizer)
    if not isinstance(embedding.embedding, nn.Embedding):
        raise SettingsError("a compact table cannot feed convolutions; load the original float32 model")
    if tokenizer.options["segmentation"] != "none":
        raise SettingsError(
            "texts are segmented by jieba, which a stock tokenizer cannot do; prepare them without --segmentation jieba"
        )
    table = embedding.embedding.weight.detach().to("cpu", torch.float32, copy=True)
    table[[special.pad, special.end]] = 0
    config = OPTConfig(
        vocab_size=len(table),
        hidden_size=table.shape[1],
        word_embed_proj_dim=table.shape[1],
        num_hidden_layers=0,
        num_attention_heads=1,
        ffn_dim=1,
        max_position_embeddings=max_length,
        do_layer_norm_before=False,
        dropout=0.0,
        use_cache=False,
        pad_token_id=special.pad,
        bos_token_id=special.pad,
        eos_token_id=special.end,
    )
    with torch.device("meta"):
        model: Any = OPTModel(config)
    model.decoder.embed_tokens.weight = nn.Parameter(table)
    model.decoder.embed_positions.weight = nn.Parameter(torch.zeros(model.decoder.embed_positions.weight.shape))
    with tempfile.TemporaryDirectory() as folder, no_progress_bars():
        model.save_pretrained(folder)
        stock_tokenizer(tokenizer, special, max_length, ends).save_pretrained(folder)
        return Transformer(folder, max_seq_length=max_length)


def _cnn(encoder: ConvolutionEncoder, layer: Any) -> CNN:  # noqa: ANN401 - a layer of `encoder`
    """One layer before its ReLU."""
    kernels: list[Tensor] = [F.pad(kernel, (0, 1 - kernel.shape[2] % 2)) for kernel in layer.kernels]
    cnn = CNN(kernels[0].shape[1], encoder.filters, [kernel.shape[2] for kernel in kernels])
    biases: Tensor = torch.zeros(encoder.filters * len(kernels)) if layer.bias is None else layer.bias
    for stock, kernel, bias in zip(cnn.convs, kernels, biases.split(encoder.filters), strict=True):
        stock.load_state_dict({"weight": kernel, "bias": bias})
    return cnn


def _filled(weight: Tensor, bias: Tensor | None, activation: nn.Module, read: str, written: str) -> Dense:
    """A linear map (out, in) with an activation, from one feature to another."""
    given = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
    out_features, in_features = weight.shape
    dense = Dense(in_features, out_features, bias is not None, activation, None, None, read, written)
    dense.linear.load_state_dict(given)
    return dense


def write_convolution(encoder: ConvolutionEncoder, folder: Path) -> None:
    """Write `convolution.safetensors` next to the files of `stock_modules`, which have the table."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.state_dict().items()}
    save_file(state, folder / CONVOLUTION_FILE)


def read_convolution(folder: Path, encoder: ConvolutionEncoder, rows: int) -> Tensor:
    """Fill an encoder with what `write_convolution` wrote, to the bit, and read the table of the stock pipeline.

    Args:
        folder: a pipeline of `stock_modules` as `save_pretrained` writes it, with `convolution.safetensors`.
        encoder: of the sizes that the files must have; it may be on the device "meta", and is on the CPU then.
        rows: V, number of the tokenizer's ids.

    Returns:
        The table, float32 (V, D); its rows of `<s>` and `</s>` are zero.

    Raises:
        ModelDirectoryError: a file is missing or damaged, or holds tensors of other sizes.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
    state = read_tensors(folder, CONVOLUTION_FILE, shapes)
    shape = (rows, encoder.embedding_dimension)
    table = read_tensors(folder, WEIGHTS_FILE, {_TABLE: shape}, whole=False)[_TABLE]
    encoder.load_state_dict(state, assign=encoder.projection.weight.is_meta)
    return huge_pages.copy_of(table)
