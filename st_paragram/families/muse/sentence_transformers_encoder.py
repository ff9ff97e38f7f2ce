"""Dual encoders as SentenceTransformers: a pipeline that ends with towers, and additional files.

    model.safetensors, modules.json, ...    the pipeline, which ends with `Router`
    heads.safetensors                       the map for contexts of answers, and the classifier
    st_paragram.json                        dimensions, training tasks, length of contexts

The name of this file matters, like that of `learning.models.sentence_transformers_encoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn
from typing_extensions import Self

from st_paragram.core.arrays import Vectors
from st_paragram.core.model_directory.configuration import configured
from st_paragram.core.tokenizers.base import FlatIds
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse.towers import TaskHeads, context_vectors, towers
from st_paragram.learning.models.averaging import pipeline_settings
from st_paragram.learning.models.pipeline_files import PipelineWithMore, read_tensors
from st_paragram.learning.modules.flat_features import flat_features, join_features
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.modules.transformer_encoder import SpecialIds

_HEADS = "heads.safetensors"
_CONTEXTS = 1024  # contexts read at a time


class DualEncoder(PipelineWithMore):
    """A SentenceTransformer with towers for questions (`encode_query`) and answers.

    `encode_document` uses the tower for answers.

    Attributes:
        tasks: Training tasks: "translation", "qa", "response", "nli".
        context_length: Maximum pieces of an answer's context; None: contexts are ignored.

    Examples:
        >>> import st_paragram
        >>> model = st_paragram.load("muse-cnn", device="cpu")
        >>> len(model.encode_answers(["She did."], contexts=["Who wrote it? She did."]))
        1
    """

    architecture: ClassVar[str] = "dual-encoder"
    tasks: tuple[str, ...]
    context_length: int | None
    # in a tuple: a module as an attribute would become part of the pipeline
    _heads: tuple[TaskHeads]

    @classmethod
    def of(
        cls,
        modules: Iterable[nn.Module],
        heads: TaskHeads,
        context_length: int | None,
        tasks: Iterable[str] = (),
        device: str | None = None,
        **settings: Any,
    ) -> Self:
        """Combine modules, the last of which is `towers`, with heads.

        `settings` are for `SentenceTransformer`.
        """
        settings.setdefault("similarity_fn_name", "cosine")
        model = cls(modules=list(modules), device=device, **settings)
        model._heads = (heads,)
        model.context_length = context_length
        model.tasks = tuple(sorted(tasks))
        return model

    @property
    def heads(self) -> TaskHeads:
        """The classifier and the map for contexts, if they are read, on the pipeline's device."""
        return self._heads[0].to(self.device)

    @property
    def has_classifier(self) -> bool:
        """Whether the model was trained to classify pairs, see `classify`."""
        return "nli" in self.tasks

    def trained_on(self, tasks: Iterable[str]) -> None:
        """Record the tasks of a training run."""
        self.tasks = tuple(sorted({*self.tasks, *tasks}))

    def write_beside(self, folder: Path) -> dict[str, Any]:
        """Write the heads; return the entries of `st_paragram.json`."""
        heads = {}
        for name, tensor in self.heads.state_dict().items():
            heads[name] = tensor.cpu().contiguous()
        save_file(heads, folder / _HEADS)
        return {"dim": self.heads.dim, "tasks": self.tasks, "context_length": self.context_length}

    @property
    def table(self) -> Tensor:
        """The embeddings of tokens, float (V, D), of a model from `train muse`."""
        first: Any = self[0]
        if isinstance(first, TokenEmbedding):
            return first.embedding.weight
        return first.model.shared.weight  # type: ignore[no-any-return]

    def vectors_of_ids(self, *columns: FlatIds) -> list[Tensor]:
        """Compute the encoder's vectors of columns of texts, float (n, D) each.

        The towers are not used.
        """
        if isinstance(self[0], TokenEmbedding):
            batches = [join_features([flat_features(*column) for column in columns])]
        else:
            batches = [self._padded(column) for column in columns]
        vectors = []
        for batch in batches:
            features = {name: tensor.to(self.device) for name, tensor in batch.items()}
            for module in list(self)[:-1]:
                features = module(features)
            vectors.append(features["sentence_embedding"].float())
        counts = [len(offsets) - 1 for _, offsets in columns]
        return list(torch.cat(vectors).split(counts))

    def _padded(self, column: FlatIds) -> dict[str, Tensor]:
        transformer: Any = self[0]
        tokenizer = transformer.tokenizer
        special = SpecialIds(tokenizer.pad_token_id, tokenizer.eos_token_id)
        batch = SentenceBatch.of(*column, special, transformer.max_seq_length)
        return {"input_ids": batch.ids, "attention_mask": batch.mask.long()}

    def _encode_fully(
        self,
        encode: Callable[..., Any],
        texts: Sequence[str],
        batch_size: int,
        show_progress_bar: bool | None = False,
    ) -> Tensor:
        """Encode texts with an encoding method, with all dimensions, float (n, D)."""
        if isinstance(texts, str):
            raise SettingsError("a single text; give a list of texts")
        vectors: Tensor = encode(
            list(texts),
            convert_to_tensor=True,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            truncate_dim=self.heads.dim,
        )
        return vectors.reshape(len(texts), self.heads.dim).to(self.device)  # of no texts: (0,)

    @torch.inference_mode()
    def encode_answers(
        self,
        answers: Sequence[str],
        contexts: Sequence[str | None] | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> Vectors:
        """Embed answers in their contexts as unit vectors, to compare with embedded questions.

        Args:
            answers: n sentences.
            contexts: The text around each answer, e.g. its paragraph. Without a context (None or an
                empty text), and in towers over a finished encoder, which read no contexts, the
                vector is that of `encode_document`.
            batch_size: Number of texts encoded at a time.
            show_progress_bar: Show a progress bar.

        Returns:
            float32 (n, D).
        """
        if contexts is not None and len(contexts) != len(answers):
            raise SettingsError(
                f"{len(answers)} answers but {len(contexts)} contexts; give one for each, or none"
            )
        if contexts is None or self.context_length is None:
            vectors = self._encode_fully(
                self.encode_document, answers, batch_size, show_progress_bar
            )
        else:
            sentences = self._encode_fully(self.encode, answers, batch_size, show_progress_bar)
            context_directions = self._embed_contexts(sentences, contexts)
            router = cast("Router", self[-1])
            vectors = self.heads.answers(router, sentences, context_directions)
        return cast("Vectors", vectors[:, : self.truncate_dim].float().cpu().numpy())

    def _embed_contexts(self, answers: Tensor, contexts: Sequence[str | None]) -> Tensor:
        """Embed contexts as unit vectors, float (n, D); without a context, use the answer's."""
        vectors = answers.clone()
        rows = [row for row, context in enumerate(contexts) if context and context.strip()]
        for begin in range(0, len(rows), _CONTEXTS):
            batch = rows[begin : begin + _CONTEXTS]
            ids, offsets = tensors(
                self._context_ids([str(contexts[row]) for row in batch]), self.device
            )
            embedded = context_vectors(self.table, ids, offsets).to(answers.dtype)
            is_known = embedded.any(1, keepdim=True)
            vectors[batch] = torch.where(is_known, embedded, vectors[batch])
        return vectors

    def _context_ids(self, texts: list[str]) -> FlatIds:
        tokenizer = cast("Any", self[0]).tokenizer
        if isinstance(self[0], TokenEmbedding):
            ids = tokenizer.encode(texts, self.context_length, torch.get_num_threads())
            return cast("FlatIds", ids)
        rows = tokenizer(
            texts, add_special_tokens=False, truncation=True, max_length=self.context_length
        )["input_ids"]
        counts = np.array([len(row) for row in rows])
        return np.fromiter(chain.from_iterable(rows), np.int64), starts(counts)

    @torch.inference_mode()
    def classify(
        self, premises: Sequence[str], hypotheses: Sequence[str], batch_size: int = 32
    ) -> Vectors:
        """Return the probabilities of the labels `NLI_LABELS` for pairs, float32 (n, 3)."""
        if not self.has_classifier:
            raise SettingsError("this model was not trained on inference; train it with --nli")
        if len(premises) != len(hypotheses):
            raise SettingsError(
                f"{len(premises)} premises but {len(hypotheses)} hypotheses; give as many of both"
            )
        first = self._encode_fully(self.encode, premises, batch_size)
        second = self._encode_fully(self.encode, hypotheses, batch_size)
        probabilities = self.heads.logits(first, second).softmax(1)
        return cast("Vectors", probabilities.cpu().numpy())


class EncoderWithTowers(DualEncoder):
    """Towers over a finished encoder; `encode` gives its sentence embeddings, scaled to length 1.

    Examples:
        >>> import st_paragram
        >>> from st_paragram import EncoderWithTowers
        >>> model = EncoderWithTowers.over(st_paragram.load("p-sp-mini", device="cpu"))
        >>> model.encode_query(["who wrote it?"]).shape
        (1, 256)
    """

    @classmethod
    def over(cls, encoder: SentenceTransformer) -> EncoderWithTowers:
        """Add a new classifier and new towers, which change nothing before training.

        The encoder is shared.
        """
        if isinstance(encoder[-1], Router):
            raise SettingsError("this model already has towers; give the model without them")
        dim = encoder.get_embedding_dimension()
        if not dim:
            raise SettingsError(
                "this model does not state the dimension of its embeddings; give another model"
            )
        settings = pipeline_settings(encoder)
        settings["truncate_dim"] = None
        modules = [*encoder, towers(dim)]
        heads = TaskHeads(dim, contexts=False)
        return cls.of(modules, heads, None, device=str(encoder.device), **settings)


def read_beside(pipeline: SentenceTransformer, folder: Path, values: dict[str, Any]) -> DualEncoder:
    """Make the model from its pipeline and additional files."""
    if not isinstance(pipeline[-1], Router):
        raise ModelDirectoryError(
            f"{folder}: its last module is not the towers of a dual encoder; save it again"
        )
    with configured(folder):
        tasks = list(values["tasks"])
        context_length = values["context_length"]
        heads = TaskHeads(values["dim"], contexts=context_length is not None)
    heads.load_state_dict(read_tensors(folder, _HEADS, heads.state_dict()))
    kind = EncoderWithTowers if context_length is None else DualEncoder
    settings = pipeline_settings(pipeline)
    return kind.of(
        pipeline, heads.eval(), context_length, tasks=tasks, device=str(pipeline.device), **settings
    )


def tensors(texts: FlatIds, device: torch.device) -> tuple[Tensor, Tensor]:
    """Convert flat ids to tensors, int64."""
    ids, offsets = texts
    return torch.from_numpy(ids.astype(np.int64)).to(device), torch.from_numpy(offsets).to(device)
