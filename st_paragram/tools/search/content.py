"""What an index is of: sentences, asked with sentences, or answers, asked with questions.

Answers go through a model's tower of answers (`encode_document`) and questions through its tower of questions
(`encode_query`), which a dual encoder has behind the embedding of sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import SettingsError, one_line
from st_paragram.tools.search.neighbours import Vectors

_ROUTES = {"query", "document"}  # as sentence-transformers' `encode_query` and `encode_document` name them


class Content(str, Enum):
    """What the texts of an index are."""

    SENTENCES = "sentences"
    ANSWERS = "answers"

    def check(self, model: TextEncoder, name: str) -> None:
        """Refuse a model that has no such vectors.

        Args:
            model: To embed with.
            name: Of the model.

        Raises:
            SettingsError: Answers are wanted of a model whose modules have no `Router` with routes "query" and
                "document": its questions and answers would be sentences as all others.
        """
        if self is Content.ANSWERS and not has_towers(model):
            seen = f"{one_line(name)} has no question and answer towers"
            raise SettingsError(f"{seen}; train a model with towers by st-paragram train muse, or leave out --answers")

    def embed_texts(self, model: TextEncoder, texts: Sequence[str]) -> Vectors:
        """Vectors of what is searched, float32 (n, D), of any length."""
        encode: Any = model.encode_document if self is Content.ANSWERS else model.encode
        return np.asarray(encode(list(texts), show_progress_bar=False), dtype=np.float32)

    def embed_queries(self, model: TextEncoder, queries: Sequence[str]) -> Vectors:
        """Vectors of what is asked, float32 (q, D), of any length."""
        encode: Any = model.encode_query if self is Content.ANSWERS else model.encode
        return np.asarray(encode(list(queries), show_progress_bar=False), dtype=np.float32)


def has_towers(model: TextEncoder) -> bool:
    """Whether a model embeds questions and answers apart."""
    if isinstance(model, Encoder):
        return False
    modules: Any = model  # a SentenceTransformer is a sequence of them; `Router` is the kind that has sub-modules
    return any(set(getattr(module, "sub_modules", ())) >= _ROUTES for module in modules)
