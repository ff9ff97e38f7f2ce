"""A dual encoder as a SentenceTransformer.

The name of this file matters, as that of `learning.models.sentence_transformers_encoder` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.towers import TaskHeads, context_vectors
from st_paragram.families.muse.vectors import SentenceVectors, tensors
from st_paragram.learning.models.sentence_transformers_encoder import taking_columns
from st_paragram.learning.modules.transformer_encoder import special_ids


@dataclass(frozen=True)
class ConvolutionShape:
    """The sizes of a `ConvolutionEncoder` besides its dimension; the attributes are its arguments."""

    filters: int
    layers: int
    keep_bag: bool

    def encoder(self, dim: int) -> ConvolutionEncoder:
        """A new encoder of these sizes."""
        return ConvolutionEncoder(dim, self.filters, self.layers, keep_bag=self.keep_bag)


@dataclass(frozen=True)
class DualEncoderValues:
    """What `st_paragram.json` says of a dual encoder.

    Attributes:
        tokenizer_options: Of sentencepiece.
        dim: Components of an embedding.
        max_length: Pieces of a text that are read, its ends included.
        context_length: Pieces of an answer's context that are read.
        tasks: What it was trained on: "translation", "qa", "response", "nli".
        convolution: Of a CNN.
    """

    tokenizer_options: dict[str, Any]
    dim: int
    max_length: int
    context_length: int = 256
    tasks: tuple[str, ...] = ()
    convolution: ConvolutionShape | None = None


@dataclass
class _Beside:
    """What is not part of the pipeline: an attribute of it that is a module would become one."""

    heads: TaskHeads
    values: Any


class WithClassifier(SentenceTransformer):
    """A pipeline, and a classifier of inference next to it."""

    _beside: _Beside
    encode = taking_columns(SentenceTransformer.encode)

    @property
    def heads(self) -> TaskHeads:
        """The classifier, and what contexts of answers go through if there is anything, on the pipeline's device."""
        return self._beside.heads.to(self.device)

    @property
    def values(self) -> Any:  # noqa: ANN401 - of each class
        """What `st_paragram.json` says."""
        return self._beside.values

    @property
    def has_classifier(self) -> bool:
        """Whether it was trained to classify pairs, see `classify`."""
        return "nli" in self.values.tasks

    def _sentences(self, texts: Sequence[str], batch_size: int, show_progress_bar: bool | None = False) -> Tensor:
        """Unit vectors of sentences, of all components, float (n, D)."""
        if isinstance(texts, str):
            raise SettingsError("a single text; give a list of texts")
        if not len(texts):
            return torch.zeros(0, self.values.dim, device=self.device)
        found: Any = self.encode(
            list(texts),
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            convert_to_tensor=True,
            truncate_dim=self.values.dim,
        )
        return cast("Tensor", found)

    @torch.inference_mode()
    def classify(self, premises: Sequence[str], hypotheses: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Probabilities that a hypothesis follows from its premise, float32 (n, 3), ordered as `NLI_LABELS`.

        Raises:
            SettingsError: a model that was not trained on inference, or another number of hypotheses than premises.
        """
        if not self.has_classifier:
            raise SettingsError("this model was not trained on inference; train it with --nli")
        if len(premises) != len(hypotheses):
            raise SettingsError(f"{len(premises)} premises and {len(hypotheses)} hypotheses; give as many of both")
        first, second = (self._sentences(texts, batch_size) for texts in (premises, hypotheses))
        return cast("NDArray[np.float32]", self.heads.logits(first, second).softmax(1).cpu().numpy())


class DualEncoder(WithClassifier):
    """A pipeline with towers of questions (`encode_query`) and answers (`encode_document`), and its heads.

    Attributes:
        sentencepiece: the tokenizer.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("muse-cnn", device="cpu")
        >>> len(model.encode_answers(["She did."], contexts=["Who wrote it? She did."]))
        1
    """

    sentencepiece: Tokenizer

    @classmethod
    def of(
        cls,
        modules: Iterable[nn.Module],
        tokenizer: Tokenizer,
        heads: TaskHeads,
        values: DualEncoderValues,
        device: str | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> DualEncoder:
        """Modules, the last of which are `towers`, with heads; settings are those of `SentenceTransformer`."""
        made = cls(modules=list(modules), device=device, **({"similarity_fn_name": "cosine"} | settings))
        made.sentencepiece = tokenizer
        made._beside = _Beside(heads, values)
        return made

    @property
    def values(self) -> DualEncoderValues:
        """What `st_paragram.json` says."""
        return cast("DualEncoderValues", self._beside.values)

    def preprocess(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        """As of `SentenceTransformer`; a CNN's texts are cut as the stock reader cuts them."""
        features = super().preprocess(*args, **kwargs)
        return self.vectors.cut(features) if "cu_seq_lens_q" in features else features

    def trained_on(self, tasks: Iterable[str]) -> None:
        """Note the tasks of a training run; `st_paragram.json` names them."""
        self._beside.values = replace(self.values, tasks=tuple(sorted({*self.values.tasks, *tasks})))

    @property
    def vectors(self) -> SentenceVectors:
        """Vectors of sentences from flat ids, as training makes them."""
        ends = self[1].ends if isinstance(self[1], ConvolutionEncoder) else 1
        return SentenceVectors(self, special_ids(self.sentencepiece), self.values.max_length, ends)

    @torch.inference_mode()
    def encode_answers(
        self,
        answers: Sequence[str],
        contexts: Sequence[str | None] | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> NDArray[np.float32]:
        """Unit vectors of answers in their contexts, to be compared with `encode_query` of questions.

        Args:
            answers: n sentences.
            contexts: the text around each, e.g. its paragraph; None or an empty one: the answer stands in for it, as in
                `encode_document`.
            batch_size: texts that are encoded at a time.
            show_progress_bar: as of `encode`.

        Returns:
            float32 (n, D).

        Raises:
            SettingsError: another number of contexts than answers, or one text in place of a list.
        """
        if contexts is not None and len(contexts) != len(answers):
            raise SettingsError(f"{len(answers)} answers and {len(contexts)} contexts; give one for each, or none")
        encoded = self._sentences(answers, batch_size, show_progress_bar)
        around = self._contexts(encoded, [None] * len(answers) if contexts is None else contexts)
        found = self.heads.answers(cast("Router", self[-1]), encoded, around)[:, : self.truncate_dim]
        return cast("NDArray[np.float32]", found.cpu().numpy())

    def _contexts(self, answers: Tensor, contexts: Sequence[str | None]) -> Tensor:
        """Unit vectors of contexts; those of the answers where there is none."""
        vectors, table = answers.clone(), self.vectors.table
        given = [number for number, context in enumerate(contexts) if context and context.strip()]
        for begin in range(0, len(given), 1024):
            part = given[begin : begin + 1024]
            texts = [str(contexts[number]) for number in part]
            flat = self.sentencepiece.encode(texts, self.values.context_length, torch.get_num_threads())
            found = context_vectors(table, *tensors(flat, answers.device)).to(answers.dtype)
            vectors[part] = torch.where(found.any(1, keepdim=True), found, vectors[part])
        return vectors
