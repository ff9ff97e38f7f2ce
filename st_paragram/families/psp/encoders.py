"""The encoders of P-SP and SP: the tokens that each reads, and its modules.

A new encoder needs an entry here, and a module of sentence-transformers after the embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import nn

    from st_paragram.tools.preparation.settings import Tokens


@dataclass(frozen=True)
class EncoderKind:
    """A kind of encoder.

    Attributes:
        tokens: Kind of its tokenizer.
        averaged: What an embedding is the mean of.
        modules: Makes the modules after the embeddings, from their dimension and `hidden_dim`.
            None: the mean.
        uses_order: Whether the order of tokens matters.
    """

    tokens: Tokens
    averaged: str
    modules: Callable[[int, int], list[nn.Module]] | None = None
    uses_order: bool = False


def _lstm(dimension: int, hidden_dim: int) -> list[nn.Module]:
    from st_paragram.families.psp.bilstm import BiLSTM
    from st_paragram.learning.modules.mean_pool import MeanPool

    lstm = BiLSTM(dimension, hidden_dim)
    return [lstm, MeanPool(lstm.get_embedding_dimension())]


Encoder = Literal["sp", "word", "trigram", "blstm", "blstm-word"]
ENCODERS: dict[str, EncoderKind] = {
    "sp": EncoderKind("sentencepiece", "sentencepiece embeddings"),
    "word": EncoderKind("word", "word embeddings"),
    "trigram": EncoderKind("trigram", "embeddings of character trigrams"),
    "blstm": EncoderKind(
        "sentencepiece",
        "the states of a bidirectional LSTM over sentencepiece embeddings",
        modules=_lstm,
        uses_order=True,
    ),
    "blstm-word": EncoderKind(
        "word",
        "the states of a bidirectional LSTM over word embeddings",
        modules=_lstm,
        uses_order=True,
    ),
}

#: The encoders in words, for help.
HELP = ", ".join(f"{kind.averaged} ({name})" for name, kind in ENCODERS.items())
#: The encoders that use the order of tokens.
USING_ORDER = [name for name, kind in ENCODERS.items() if kind.uses_order]
#: The encoders that can start from another averaging model.
AVERAGING_EMBEDDINGS = [name for name, kind in ENCODERS.items() if kind.modules is None]
