"""A transformer decoder that generates a sentence from a latent vector, which enters in two places.

Source: EMNLP 2020, section 2 and appendix A (table 5). "Attention": in place of a translation
model's attention to the source, a layer adds W [x; z] + b to its state x. "Logit": the logits are
E [z; h]. Both are sums of a part for x or h and a part for z, which is computed once per sentence.
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
    """Decode sentences over V ids from latent vectors with k dimensions.

    The vectors enter layers, logits or both.
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
        self.dropout = shape.dropout
        self.scale = shape.dim**0.5
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
        nn.init.normal_(self.output.weight, std=shape.dim**-0.5)
        if self.latent_output is not None:
            nn.init.normal_(self.latent_output.weight, std=shape.dim**-0.5)

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
        """Compute the parts of the logits of a batch's targets from latents, float (B, k)."""
        states = self.states(batch.previous, latents)[batch.mask]
        if self.latent_output is None:
            return LinearSoftmax(states, self.output.weight)
        return LinearSoftmax(
            states,
            of_states=self.output.weight,
            latents=latents,
            of_latents=self.latent_output.weight,
            sentences=batch.sentences,
        )

    def next_logits(self, previous: Tensor, latents: Tensor) -> Tensor:
        """Compute the logits of the ids after B prefixes of equal length, float (B, V)."""
        logits = self.states(previous, latents)[:, -1] @ self.output.weight.T
        if self.latent_output is None:
            return logits
        return logits + latents @ self.latent_output.weight.T


class _Layer(nn.Module):
    """Self-attention, the latent vector and a feed-forward network.

    Each is followed by dropout, a residual and a norm. There is no dropout of attention weights, as
    in the authors' code and in the encoder.
    """

    def __init__(self, shape: TransformerShape, latent_dim: int) -> None:
        super().__init__()
        dim = shape.dim
        self.heads = shape.heads
        self.dropout = shape.dropout
        self.query_key_value = nn.Linear(dim, 3 * dim)
        self.attended = nn.Linear(dim, dim)
        self.widen = nn.Linear(dim, shape.ffn_dim)
        self.narrow = nn.Linear(shape.ffn_dim, dim)
        self.attention_norm = nn.LayerNorm(dim)
        self.ffn_norm = nn.LayerNorm(dim)
        self.latent_norm = nn.LayerNorm(dim) if latent_dim else None
        if latent_dim:
            self.of_state = nn.Linear(dim, dim)
            self.of_latent = nn.Linear(latent_dim, dim, bias=False)

    def initialise_latent(self) -> None:
        """Initialize with Xavier's uniform range of the whole W in W [x; z].

        Its two parts are stored separately.
        """
        if self.latent_norm is None:
            return
        fan_out, state_dim = self.of_state.weight.shape
        fan_in = state_dim + self.of_latent.in_features
        bound = (6 / (fan_out + fan_in)) ** 0.5
        nn.init.uniform_(self.of_state.weight, -bound, bound)
        nn.init.uniform_(self.of_latent.weight, -bound, bound)

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        x = self.attention_norm(x + self._drop(self._attention(x)))
        if self.latent_norm is not None:
            injected = self.of_state(x) + self.of_latent(latents)[:, None]
            x = self.latent_norm(x + self._drop(injected))
        return self.ffn_norm(x + self._drop(self.narrow(F.relu(self.widen(x)))))

    def _attention(self, x: Tensor) -> Tensor:
        rows, length, dim = x.shape
        projected = self.query_key_value(x).view(rows, length, 3, self.heads, -1)
        query, key, value = projected.permute(2, 0, 3, 1, 4)
        attention = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.attended(attention.transpose(1, 2).reshape(rows, length, dim))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)
