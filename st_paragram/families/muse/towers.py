"""The parts of a dual encoder after its sentence embedding: towers and a classifier.

The towers are sentence-transformers' own modules in its `Router`, so `encode_query` and
`encode_document` work without this package. Contexts of answers and the classifier are not part of
the pipeline; they are in `TaskHeads`.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Router
from torch import Tensor, nn

from st_paragram.tools.evaluation.nli import NLI_LABELS

SENTENCE = "sentence"
QUERY = "query"
DOCUMENT = "document"


def towers(dim: int) -> Router:
    """Make the last module of a dual encoder: unit vectors of sentences, questions and answers.

    Sentences are the default. A tower has two residual layers, x + tanh(W x + b), whose maps are
    initialized to 0: before training, a text has the same vector as question, answer and sentence.
    """
    routes: dict[str, list[Any]] = {
        SENTENCE: [Normalize()],
        QUERY: _tower(dim),
        DOCUMENT: _tower(dim),
    }
    return Router(routes, default_route=SENTENCE)


def _tower(dim: int) -> list[nn.Module]:
    layers = [Dense(dim, dim, activation_function=nn.Tanh(), use_residual=True) for _ in range(2)]
    for layer in layers:
        nn.init.zeros_(layer.linear.weight)
        nn.init.zeros_(layer.linear.bias)
    return [Normalize(), *layers, Normalize()]


def through(router: Router, route: str, vectors: Tensor, skip: int = 0) -> Tensor:
    """Apply a route of the towers to vectors, float (n, D), without its first `skip` modules."""
    features: dict[str, Any] = {"sentence_embedding": vectors}
    for module in list(cast("nn.Sequential", router.sub_modules[route]))[skip:]:
        features = module(features)
    return features["sentence_embedding"]


class TaskHeads(nn.Module):
    """The map for contexts of answers, and the inference classifier.

    An answer's first layer is u + tanh(W u + V (c - u) + b) with the answer u and its context c,
    both unit vectors. Without a context, c = u, which gives the layer of `Router`. So a context
    adds only V, which is initialized to 0. The classifier reads (u, v, |u - v|, u * v), as in the
    paper (ACL 2020, section 3.1).
    """

    def __init__(self, dim: int, contexts: bool = True) -> None:
        """Make new heads for sentences with `dim` dimensions, perhaps with a map for contexts."""
        super().__init__()
        self.dim = dim
        if contexts:
            self.context: nn.Linear = nn.Linear(dim, dim, bias=False)
            nn.init.zeros_(self.context.weight)
        self.classifier: nn.Sequential = nn.Sequential(
            nn.Linear(4 * dim, dim), nn.ReLU(), nn.Linear(dim, len(NLI_LABELS))
        )

    def answers(self, router: Router, answers: Tensor, contexts: Tensor) -> Tensor:
        """Compute unit vectors of answers in their contexts from those of both, float (B, D) each.

        Without a context, give the answer itself; the router must be from `towers`.
        """
        first: Any = cast("nn.Sequential", router.sub_modules[DOCUMENT])[1]
        inner = first.linear(answers) + self.context(contexts - answers)
        return through(router, DOCUMENT, answers + first.activation_function(inner), skip=2)

    def logits(self, premises: Tensor, hypotheses: Tensor, dropout: float = 0.0) -> Tensor:
        """Compute logits for `NLI_LABELS`, float (B, 3), of pairs of unit vectors, float (B, D).

        The components of unit vectors shrink with the dimension; they are rescaled to about 1.
        `dropout` is applied before both layers, in training.
        """
        u = premises * self.dim**0.5
        v = hypotheses * self.dim**0.5
        features = torch.cat([u, v, (u - v).abs(), u * v], 1)
        first, activation, last = self.classifier
        hidden = activation(first(F.dropout(features, dropout)))
        return cast("Tensor", last(F.dropout(hidden, dropout)))


def context_vectors(table: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
    """Compute unit vectors of bags of tokens, float (B, D): directions of the means of their rows.

    Bag i is ids[offsets[i]:offsets[i + 1]], int64 (total,) and (B + 1,); the table is float (V, D).
    """
    return F.normalize(F.embedding_bag(ids, table, offsets[:-1], mode="mean"), dim=1)
