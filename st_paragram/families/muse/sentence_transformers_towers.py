"""Towers and a classifier over a finished encoder, as a SentenceTransformer.

The name of this file matters, as that of `learning.models.sentence_transformers_encoder` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import nn

from st_paragram.core.encoding.model_files import PIPELINE_SETTINGS
from st_paragram.errors import SettingsError
from st_paragram.families.muse.sentence_transformers_encoder import WithClassifier, _Beside
from st_paragram.families.muse.towers import TaskHeads, towers


@dataclass(frozen=True)
class TowersValues:
    """What `st_paragram.json` says of towers over a finished encoder.

    Attributes:
        dim: Components of an embedding.
        tasks: What the towers and the classifier were trained on: "qa", "response", "nli".
        encoder: Distinguishes these values from those of a `DualEncoder`.
    """

    dim: int
    tasks: tuple[str, ...] = ()
    encoder: Literal["finished"] = "finished"


class EncoderWithTowers(WithClassifier):
    """A pipeline that ends with `towers`: `encode` of sentences stays what it was, of length 1.

    `encode_query` and `encode_document` embed questions and answers.

    Example:
        >>> import st_paragram
        >>> from st_paragram import EncoderWithTowers
        >>> model = EncoderWithTowers.over(st_paragram.load("p-sp-mini", device="cpu"))
        >>> model.encode_query(["who wrote it?"]).shape
        (1, 256)
    """

    @classmethod
    def over(cls, encoder: SentenceTransformer) -> EncoderWithTowers:
        """New towers, which change nothing yet, and a new classifier over an encoder, whose modules are shared.

        Raises:
            SettingsError: It has towers already, or no known dimension.
        """
        if isinstance(encoder[-1], Router):
            raise SettingsError("this model has towers already; give the model without them")
        if not (dim := encoder.get_embedding_dimension()):
            raise SettingsError("this model does not say how many components its embeddings have")
        settings = {name: getattr(encoder, name) for name in PIPELINE_SETTINGS} | {"truncate_dim": None}
        modules = [*encoder, towers(dim)]
        return cls.of(modules, TaskHeads(dim, contexts=False), TowersValues(dim), str(encoder.device), **settings)

    @classmethod
    def of(
        cls,
        modules: Iterable[nn.Module],
        heads: TaskHeads,
        values: TowersValues,
        device: str | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> EncoderWithTowers:
        """Modules, the last of which are `towers`, with a classifier; settings are those of `SentenceTransformer`."""
        made = cls(modules=list(modules), device=device, **({"similarity_fn_name": "cosine"} | settings))
        made._beside = _Beside(heads, values)
        return made

    def trained_on(self, tasks: Iterable[str]) -> None:
        """Note the tasks of a training run; `st_paragram.json` names them."""
        self._beside.values = TowersValues(self.values.dim, tuple(sorted({*self.values.tasks, *tasks})))

    def encode_answers(
        self,
        answers: Sequence[str],
        contexts: Sequence[str | None] | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> NDArray[np.float32]:
        """Unit vectors of answers, float32 (n, D), to be compared with `encode_query`.

        They are those of `encode_document`: these towers read no contexts, which are ignored.
        """
        options: Any = {"batch_size": batch_size, "show_progress_bar": show_progress_bar}
        return np.asarray(self.encode_document(list(answers), **options), np.float32)
