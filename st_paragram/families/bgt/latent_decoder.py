"""A transformer decoder that generates a sentence from a latent vector, which enters in two places.

Source: EMNLP 2020, section 3 and table 5. "Attention": in place of a translation model's attention
to the source, a layer adds W [x; z] + b to its state x. "Logit": the logits are E [z; h]. Both are
sums of a part for x or h and a part for z, which is computed once per sentence.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from st_paragram.families.bgt.softmax import LinearSoftmax
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.transformer_encoder import (
    SpecialIds,
    TransformerShape,
    initialise,
)


class LatentDecoder(nn.Module):
    """Decode sentences over V ids from latent vectors with k dimensions, which enter layers, logits
    or both.
    """

    def __init__(
        self,
        vocabulary: int,
        shape: TransformerShape,
        latent_dim: int,
        special: SpecialIds,
        at_attention: bool = True,
        at_logits: bool = True,
    ) -> None:
        super().__init__()
        self.dropout, self.scale = shape.dropout, shape.dim**0.5
        self.embedding = nn.Embedding(vocabulary, shape.dim, padding_idx=special.pad)
        # not trained
        self.positions = MarianSinusoidalPositionalEmbedding(shape.max_length, shape.dim)
        self.positions.weight.data = self.positions.create_weight()
        layers = [_Layer(shape, latent_dim if at_attention else 0) for _ in range(shape.layers)]
        self.layers = nn.ModuleList(layers)
        self.output = nn.Embedding(vocabulary, shape.dim)
        self.latent_output = nn.Embedding(vocabulary, latent_dim) if at_logits else None
        initialise(self, special)
        for layer in layers:
            layer.initialise_latent()
        for table in (self.output, self.latent_output):
            if table is not None:
                nn.init.normal_(table.weight, std=shape.dim**-0.5)

    def states(self, previous: Tensor, latents: Tensor) -> Tensor:
        """Compute the state at each position, float (B, L, d), from the preceding ids.

        Args:
            previous: int64 (B, L): the end of sentence, then the ids so far, then padding, which
                has no effect on earlier positions.
            latents: float (B, k).
        """
        x = self.embedding(previous) * self.scale + self.positions(previous.shape)
        x = F.dropout(x, self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, latents)
        return x

    def softmax(self, batch: SentenceBatch, latents: Tensor) -> LinearSoftmax:
        """Compute the parts of the logits of a batch's targets; `latents`, float (B, k), are for
        its sentences.
        """
        states = self.states(batch.previous, latents)[batch.mask]
        if self.latent_output is None:
            return LinearSoftmax(states, self.output.weight)
        return LinearSoftmax(
            states, self.output.weight, latents, self.latent_output.weight, batch.sentences
        )

    def next_logits(self, previous: Tensor, latents: Tensor) -> Tensor:
        """Compute the logits of the next ids after B prefixes of equal length, float (B, V);
        arguments as `states`.
        """
        logits = self.states(previous, latents)[:, -1] @ self.output.weight.T
        return (
            logits if self.latent_output is None else logits + latents @ self.latent_output.weight.T
        )


class _Layer(nn.Module):
    """Self-attention, the latent vector, a feed-forward network; each followed by dropout, a
    residual and a norm.

    There is no dropout of attention weights, as in the authors' code and in the encoder.
    """

    def __init__(self, shape: TransformerShape, latent_dim: int) -> None:
        super().__init__()
        dim = shape.dim
        self.heads, self.dropout = shape.heads, shape.dropout
        self.query_key_value, self.attended = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.widen, self.narrow = nn.Linear(dim, shape.ffn_dim), nn.Linear(shape.ffn_dim, dim)
        self.attention_norm, self.ffn_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.latent_norm = nn.LayerNorm(dim) if latent_dim else None
        if latent_dim:
            self.of_state, self.of_latent = (
                nn.Linear(dim, dim),
                nn.Linear(latent_dim, dim, bias=False),
            )

    def initialise_latent(self) -> None:
        """Initialize with Xavier's uniform range of the whole W in W [x; z], whose two parts are
        stored separately.
        """
        if self.latent_norm is not None:
            parts = (self.of_state.weight, self.of_latent.weight)
            bound = (6 / (len(parts[0]) + sum(part.shape[1] for part in parts))) ** 0.5
            for part in parts:
                nn.init.uniform_(part, -bound, bound)

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        x = self.attention_norm(x + self._drop(self._attention(x)))
        if self.latent_norm is not None:
            x = self.latent_norm(
                x + self._drop(self.of_state(x) + self.of_latent(latents)[:, None])
            )
        return self.ffn_norm(x + self._drop(self.narrow(F.relu(self.widen(x)))))

    def _attention(self, x: Tensor) -> Tensor:
        rows, length, dim = x.shape
        query, key, value = (
            part.view(rows, length, self.heads, -1).transpose(1, 2)
            for part in self.query_key_value(x).chunk(3, -1)
        )
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.attended(found.transpose(1, 2).reshape(rows, length, dim))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)
