"""The files of a recurrent model: `TokenEmbedding` on sentencepiece, `BiLSTM`, `MeanPool`. One directory, two readers.

Stock reader, `SentenceTransformer(path)`: `WordEmbeddings`, `LSTM` and `Pooling` as `save_pretrained` writes them, with
a `tokenizer.json`. Needs no plugin and no flag. Plugin's reader, `st_paragram.load(path)`: `st_paragram.json` and
`sentencepiece.model` next to the same weights, `model.safetensors` and `1_LSTM/model.safetensors`; it reads no other
file of modules, so that no class is imported that a folder names.

Texts of known pieces have the same vectors with both. Unknown pieces stay in the sequence that the stock reader's LSTM
sees, and an empty text is the zero vector there; the plugin drops unknown pieces, and takes the row of the unknown id
for a text without a known one. Both need that row, so the stored table has it.

With the stock reader use `encode`, with `prompt_name` where there are prompts: `encode_query` and `encode_document` of
sentence-transformers 6.2 pass on a task that its `TransformersTokenizerWrapper` does not take.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from torch import Tensor, nn

from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.directory import WEIGHTS_FILE, Configuration, damaged, write_configuration
from st_paragram.core.encoding.table import TableType
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.stock import convert_tokenizer
from st_paragram.errors import ModelDirectoryError, short
from st_paragram.families.sp.bilstm import BiLSTM
from st_paragram.learning.models import stock
from st_paragram.learning.models.tensors_file import read_tensors
from st_paragram.learning.modules import huge_pages
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.sentencepiece_embedding import token_embedding
from st_paragram.learning.modules.token_embedding import TokenEmbedding

#: The name of the architecture in `st_paragram.json`.
RECURRENT = "recurrent"

#: Where the stock reader has the weights of its second module, and their name in its first.
_LSTM_WEIGHTS, _TABLE = f"1_LSTM/{WEIGHTS_FILE}", "emb_layer.weight"


def recurrent_pipeline(
    embedding: TokenEmbedding,
    hidden_dim: int = 150,
    device: str | None = None,
    **settings: Any,  # noqa: ANN401
) -> SentenceTransformer:
    """A recurrent model: `embedding`, a new `BiLSTM`, then `MeanPool`.

    Args:
        embedding: the first module.
        hidden_dim: components of a state of one direction; embeddings have twice as many.
        device: torch device; chosen by sentence-transformers if not given.
        settings: further arguments of `SentenceTransformer`, e.g. `prompts`; the similarity is cosine by default.
    """
    modules: list[nn.Module] = [
        embedding,
        BiLSTM(embedding.embedding_dimension, hidden_dim),
        MeanPool(2 * hidden_dim),
    ]
    return SentenceTransformer(modules=modules, device=device, **({"similarity_fn_name": "cosine"} | settings))


def recurrent_modules(model: SentenceTransformer) -> tuple[TokenEmbedding, BiLSTM] | None:
    """The modules with weights, if the pipeline is what `recurrent_pipeline` makes on sentencepiece; else None."""
    modules = tuple(model._modules.values())
    if len(modules) != 3:
        return None
    embedding, lstm, pool = modules
    if not isinstance(embedding, TokenEmbedding) or type(lstm) is not BiLSTM or type(pool) is not MeanPool:
        return None
    kind = type(embedding)
    inherited = (kind.forward, kind.preprocess) == (TokenEmbedding.forward, TokenEmbedding.preprocess)
    tokenizer = embedding.tokenizer
    whole = isinstance(tokenizer, SentencePieceTokenizer) and not tokenizer.dropped
    known = whole and isinstance(embedding.embedding, nn.Embedding)
    return (embedding, lstm) if inherited and known else None


def _modules_of(model: SentenceTransformer) -> tuple[TokenEmbedding, BiLSTM]:
    modules = recurrent_modules(model)
    if modules is None:
        kinds = " and ".join(type(module).__name__ for module in model)
        raise ModelDirectoryError(
            f"a pipeline of {kinds} is not a recurrent model: TokenEmbedding, BiLSTM and MeanPool"
        )
    return modules


def holds(model: SentenceTransformer) -> bool:
    """Whether a pipeline is a recurrent model."""
    return recurrent_modules(model) is not None


def check(model: SentenceTransformer) -> None:
    """Refuse early a tokenizer that cannot become a `tokenizer.json`.

    Raises:
        ModelDirectoryError: it cannot, or it is another pipeline.
    """
    embedding, _ = _modules_of(model)
    _stock_tokenizer(embedding)


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the files of both readers, without a model card; arguments and errors as of `stock.write`.

    Raises:
        ModelDirectoryError: another pipeline, or a tokenizer that cannot become a `tokenizer.json`.
    """
    embedding, lstm = _modules_of(model)
    with torch.random.fork_rng(devices=[]):  # a checkpoint must not move the generator that training draws from
        whole = _stock_pipeline(model, embedding, lstm)
    stock.write(whole, folder, dtype, truncate_dim, RECURRENT)
    (folder / model_files.tokenizer_file(embedding.tokenizer.kind)).write_bytes(embedding.tokenizer.content)
    values = {
        "embedding_dimension": embedding.embedding_dimension,
        "hidden_dim": lstm.hidden_dim,
        "vocabulary_size": len(embedding.tokenizer),
        "tokenizer_kind": embedding.tokenizer.kind,
        "tokenizer_options": embedding.tokenizer.options,
        "dropout": embedding.dropout,
        "table_type": TableType.FLOAT32.value,
    }
    write_configuration(folder, Configuration(RECURRENT, values))


def _stock_pipeline(model: SentenceTransformer, embedding: TokenEmbedding, lstm: BiLSTM) -> SentenceTransformer:
    """The same weights and settings in sentence-transformers' own modules, on the CPU."""
    stock_lstm = LSTM(lstm.embedding_dimension, lstm.hidden_dim)
    stock_lstm.load_state_dict(lstm.state_dict())
    table = embedding.embedding.weight.detach().to("cpu", torch.float32)
    modules: list[nn.Module] = [
        WordEmbeddings(_stock_tokenizer(embedding), table, update_embeddings=True),
        stock_lstm,
        Pooling(2 * lstm.hidden_dim, pooling_mode="mean"),
    ]
    settings = {name: getattr(model, name) for name in model_files.PIPELINE_SETTINGS}
    return SentenceTransformer(modules=modules, device="cpu", **settings)


def _stock_tokenizer(embedding: TokenEmbedding) -> Any:  # noqa: ANN401 - transformers is slow to import
    """The tokenizer as readers without the plugin have it."""
    from transformers import PreTrainedTokenizerFast

    converted = convert_tokenizer(embedding.tokenizer)  # type: ignore[arg-type] # as `recurrent_modules` found
    return PreTrainedTokenizerFast(tokenizer_object=converted)


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> SentenceTransformer:
    """Read what `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: a file is missing or damaged, or does not fit the others.
    """
    stored, hidden_dim = _checked(folder, values)
    tokenizer = model_files.read_tokenizer(folder, stored)
    table = _read_table(folder, len(tokenizer), stored.embedding_dimension)
    lstm = _read_lstm(folder, stored.embedding_dimension, hidden_dim)
    settings = model_files.read_pipeline_settings(folder) | (
        {} if truncate_dim is None else {"truncate_dim": truncate_dim}
    )
    with stock.reading(folder, "its modules cannot be made"):
        embedding = token_embedding(tokenizer, weights=table, dropout=stored.dropout)
        model = recurrent_pipeline(embedding, hidden_dim, device, **settings)
        model[1].load_state_dict(lstm)
    if (card := folder / "README.md").is_file():
        # As the stock reader does it: saving the model again keeps its card.
        model._model_card_text = card.read_text(encoding="utf-8", errors="replace")  # type: ignore[assignment]
    model.eval()
    return model


def _checked(folder: Path, values: dict[str, Any]) -> tuple[model_files.AveragingValues, int]:
    """What `st_paragram.json` says of table and tokenizer, as of an averaging model, and `hidden_dim`."""
    stored = model_files.checked(folder, {name: value for name, value in values.items() if name != "hidden_dim"})
    hidden_dim = values.get("hidden_dim")
    if type(hidden_dim) is not int or hidden_dim < 1:
        raise damaged(folder, f"hidden_dim is {short(hidden_dim)}")
    if stored.tokenizer_kind != SentencePieceTokenizer.kind or stored.table_type is not TableType.FLOAT32:
        raise damaged(folder, f"{short(stored.tokenizer_kind)} tokens with a table of {stored.table_type.value}")
    return stored, hidden_dim


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights from a folder that `write` made.

    Raises:
        ModelDirectoryError: another pipeline, or weights that are missing, damaged or of another shape or type.
    """
    embedding, lstm = _modules_of(into)
    table = _read_table(folder, *embedding.embedding.weight.shape)
    states = _read_lstm(folder, lstm.embedding_dimension, lstm.hidden_dim)
    with torch.no_grad():
        embedding.embedding.weight.copy_(table)
    lstm.load_state_dict(states)


def _read_table(folder: Path, rows: int, dimension: int) -> Tensor:
    return huge_pages.copy_of(read_tensors(folder, WEIGHTS_FILE, {_TABLE: (rows, dimension)})[_TABLE])


def _read_lstm(folder: Path, dimension: int, hidden_dim: int) -> dict[str, Tensor]:
    gates = 4 * hidden_dim
    shapes = {
        "weight_ih": (gates, dimension),
        "weight_hh": (gates, hidden_dim),
        "bias_ih": (gates,),
        "bias_hh": (gates,),
    }
    both = {f"encoder.{name}_l0{end}": shape for end in ("", "_reverse") for name, shape in shapes.items()}
    return read_tensors(folder, _LSTM_WEIGHTS, both)
