"""Dual encoders as SentenceTransformers: a pipeline that ends with towers, and additional files.

    model.safetensors, modules.json, ...    the pipeline, which ends with `Router`; a transformer opens everywhere
    heads.safetensors                       the map for contexts of answers, and the inference classifier
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
from numpy.typing import NDArray
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn
from typing_extensions import Self

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
    """A SentenceTransformer with towers for questions (`encode_query`) and answers
    (`encode_document`), and heads.

    Attributes:
        tasks: Training tasks: "translation", "qa", "response", "nli".
        context_length: Maximum pieces of an answer's context; None: contexts are ignored.

    Example:
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
        """Combine modules, the last of which is `towers`, with heads; `settings` are for
        `SentenceTransformer`.
        """
        made = cls(
            modules=list(modules), device=device, **({"similarity_fn_name": "cosine"} | settings)
        )
        made._heads, made.context_length, made.tasks = (
            (heads,),
            context_length,
            tuple(sorted(tasks)),
        )
        return made

    @property
    def heads(self) -> TaskHeads:
        """The classifier and, if contexts are read, the map for contexts of answers, on the
        pipeline's device.
        """
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
        state = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.heads.state_dict().items()
        }
        save_file(state, folder / _HEADS)
        return {"dim": self.heads.dim, "tasks": self.tasks, "context_length": self.context_length}

    @property
    def table(self) -> Tensor:
        """The embeddings of pieces, float (V, D), of a model from `train muse`."""
        first: Any = self[0]
        table: Tensor = (
            first.embedding.weight
            if isinstance(first, TokenEmbedding)
            else first.model.shared.weight
        )
        return table

    def vectors_of_ids(self, *columns: FlatIds) -> list[Tensor]:
        """Compute the encoder's vectors of columns of texts, before the towers, float (n, D) each."""
        first: Any = self[0]
        if isinstance(first, TokenEmbedding):
            batches = [join_features([flat_features(*column) for column in columns])]
        else:
            special = SpecialIds(first.tokenizer.pad_token_id, first.tokenizer.eos_token_id)
            rows = [SentenceBatch.of(*column, special, first.max_seq_length) for column in columns]
            batches = [{"input_ids": each.ids, "attention_mask": each.mask.long()} for each in rows]
        vectors = []
        for batch in batches:
            features: dict[str, Tensor] = {
                name: tensor.to(self.device) for name, tensor in batch.items()
            }
            for module in list(self)[:-1]:
                features = module(features)
            vectors.append(features["sentence_embedding"].float())
        return list(torch.cat(vectors).split([len(offsets) - 1 for _, offsets in columns]))

    def _tensor(
        self, encode: Callable[..., Any], texts: Sequence[str], batch_size: int, bar: bool | None
    ) -> Tensor:
        """Encode texts with an encoding method, with all dimensions, float (n, D)."""
        if isinstance(texts, str):
            raise SettingsError("a single text; give a list of texts")
        options = {
            "batch_size": batch_size,
            "show_progress_bar": bar,
            "truncate_dim": self.heads.dim,
        }
        vectors: Tensor = encode(list(texts), convert_to_tensor=True, **options)
        return vectors.reshape(len(texts), self.heads.dim).to(self.device)  # of no texts: (0,)

    @torch.inference_mode()
    def encode_answers(
        self,
        answers: Sequence[str],
        contexts: Sequence[str | None] | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> NDArray[np.float32]:
        """Embed answers in their contexts as unit vectors, float32 (n, D), to be compared with
        embedded questions.

        Args:
            answers: n sentences.
            contexts: The text around each answer, e.g. its paragraph. Without a context (None or an
                empty text), and in towers over a finished encoder, which read no contexts, the
                vector is that of `encode_document`.
            batch_size: Number of texts encoded at a time.
            show_progress_bar: Show a progress bar.
        """
        if contexts is not None and len(contexts) != len(answers):
            raise SettingsError(
                f"{len(answers)} answers but {len(contexts)} contexts; give one for each, or none"
            )
        if contexts is None or self.context_length is None:
            vectors = self._tensor(self.encode_document, answers, batch_size, show_progress_bar)
        else:
            encoded = self._tensor(self.encode, answers, batch_size, show_progress_bar)
            vectors = self.heads.answers(
                cast("Router", self[-1]), encoded, self._around(encoded, contexts)
            )
        return cast("NDArray[np.float32]", vectors[:, : self.truncate_dim].float().cpu().numpy())

    def _around(self, answers: Tensor, contexts: Sequence[str | None]) -> Tensor:
        """Embed contexts as unit vectors, float (n, D); without a context, use the answer's vector."""
        vectors, tokenizer = answers.clone(), cast("Any", self[0]).tokenizer
        given = [number for number, context in enumerate(contexts) if context and context.strip()]
        for begin in range(0, len(given), _CONTEXTS):
            part = given[begin : begin + _CONTEXTS]
            texts = [str(contexts[number]) for number in part]
            if isinstance(self[0], TokenEmbedding):
                flat = tokenizer.encode(texts, self.context_length, torch.get_num_threads())
            else:
                cut = {
                    "add_special_tokens": False,
                    "truncation": True,
                    "max_length": self.context_length,
                }
                rows = tokenizer(texts, **cut)["input_ids"]
                flat = (
                    np.fromiter(chain.from_iterable(rows), np.int64),
                    starts(np.array(list(map(len, rows)))),
                )
            found = context_vectors(self.table, *tensors(flat, self.device)).to(answers.dtype)
            vectors[part] = torch.where(found.any(1, keepdim=True), found, vectors[part])
        return vectors

    @torch.inference_mode()
    def classify(
        self, premises: Sequence[str], hypotheses: Sequence[str], batch_size: int = 32
    ) -> NDArray[np.float32]:
        """Return the probabilities of the labels `NLI_LABELS` for pairs of premise and hypothesis,
        float32 (n, 3).
        """
        if not self.has_classifier:
            raise SettingsError("this model was not trained on inference; train it with --nli")
        if len(premises) != len(hypotheses):
            raise SettingsError(
                f"{len(premises)} premises but {len(hypotheses)} hypotheses; give as many of both"
            )
        first, second = (
            self._tensor(self.encode, texts, batch_size, False) for texts in (premises, hypotheses)
        )
        return cast(
            "NDArray[np.float32]", self.heads.logits(first, second).softmax(1).cpu().numpy()
        )


class EncoderWithTowers(DualEncoder):
    """Towers over a finished encoder: `encode` gives the encoder's sentence embeddings, scaled to
    length 1.

    Example:
        >>> import st_paragram
        >>> from st_paragram import EncoderWithTowers
        >>> model = EncoderWithTowers.over(st_paragram.load("p-sp-mini", device="cpu"))
        >>> model.encode_query(["who wrote it?"]).shape
        (1, 256)
    """

    @classmethod
    def over(cls, encoder: SentenceTransformer) -> EncoderWithTowers:
        """Add new towers, which change nothing before training, and a new classifier; the encoder
        is shared.
        """
        if isinstance(encoder[-1], Router):
            raise SettingsError("this model already has towers; give the model without them")
        if not (dim := encoder.get_embedding_dimension()):
            raise SettingsError(
                "this model does not state the dimension of its embeddings; give another model"
            )
        settings = pipeline_settings(encoder) | {"truncate_dim": None}
        modules, heads = [*encoder, towers(dim)], TaskHeads(dim, contexts=False)
        return cls.of(modules, heads, None, device=str(encoder.device), **settings)


def read_beside(pipeline: SentenceTransformer, folder: Path, values: dict[str, Any]) -> DualEncoder:
    """Make the model from its pipeline and additional files."""
    if not isinstance(pipeline[-1], Router):
        raise ModelDirectoryError(
            f"{folder}: its last module is not the towers of a dual encoder; save it again"
        )
    with configured(folder):
        tasks, context_length = list(values["tasks"]), values["context_length"]
        heads = TaskHeads(values["dim"], contexts=context_length is not None)
    heads.load_state_dict(read_tensors(folder, _HEADS, heads.state_dict()))
    kind = EncoderWithTowers if context_length is None else DualEncoder
    device = str(pipeline.device)
    return kind.of(
        pipeline, heads.eval(), context_length, tasks, device, **pipeline_settings(pipeline)
    )


def tensors(texts: FlatIds, device: torch.device) -> tuple[Tensor, Tensor]:
    """Convert flat ids to tensors, int64."""
    ids, offsets = texts
    return torch.from_numpy(ids.astype(np.int64)).to(device), torch.from_numpy(offsets).to(device)
