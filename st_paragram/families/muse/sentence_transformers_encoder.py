"""Dual encoders as SentenceTransformers: a pipeline that ends with towers, and what is next to it.

    model.safetensors, modules.json, ...    the pipeline, which ends with `Router`; a transformer's opens everywhere
    heads.safetensors                       what contexts of answers go through, and the classifier of inference
    sentencepiece.model                     of a `DualEncoder`
    st_paragram.json                        sizes, what it was trained for

The name of this file matters, as that of `learning.models.sentence_transformers_encoder` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import pydantic
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn
from typing_extensions import Self

from st_paragram.core.encoding.directory import configured, damaged, file_of
from st_paragram.core.encoding.model_files import tokenizer_file
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, refused
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.t5_encoder import is_t5
from st_paragram.families.muse.towers import TaskHeads, context_vectors, towers
from st_paragram.families.muse.vectors import SentenceVectors, tensors
from st_paragram.learning.models.averaging import pipeline_settings
from st_paragram.learning.models.pipeline_files import PipelineWithMore, read_tensors
from st_paragram.learning.modules.transformer_encoder import special_ids

_HEADS = "heads.safetensors"


@dataclass(frozen=True)
class DualEncoderValues:
    """What `st_paragram.json` says of a dual encoder.

    Attributes:
        tokenizer_options: Of sentencepiece.
        dim: Components of an embedding.
        max_length: Pieces of a text that are read, its ends included.
        context_length: Pieces of an answer's context that are read.
        tasks: What it was trained on: "translation", "qa", "response", "nli".
    """

    tokenizer_options: dict[str, Any]
    dim: int
    max_length: int
    context_length: int = 256
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class TowersValues:
    """What `st_paragram.json` says of towers over a finished encoder; `encoder` distinguishes these values."""

    dim: int
    tasks: tuple[str, ...] = ()
    encoder: Literal["finished"] = "finished"


@dataclass
class _Beside:
    """What is not part of the pipeline: an attribute of it that is a module would become one."""

    heads: TaskHeads
    values: Any
    tokenizer: Tokenizer | None = None


class WithClassifier(PipelineWithMore):
    """A pipeline that ends with `towers`, and a classifier of inference next to it."""

    architecture: ClassVar[str] = "dual-encoder"
    _beside: _Beside

    @classmethod
    def of(
        cls,
        modules: Iterable[nn.Module],
        heads: TaskHeads,
        values: Any,  # noqa: ANN401 - of each class
        tokenizer: Tokenizer | None = None,
        device: str | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> Self:
        """Modules, the last of which are `towers`, with heads; settings are those of `SentenceTransformer`."""
        made = cls(modules=list(modules), device=device, **({"similarity_fn_name": "cosine"} | settings))
        made._beside = _Beside(heads, values, tokenizer)
        return made

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

    def trained_on(self, tasks: Iterable[str]) -> None:
        """Note the tasks of a training run; `st_paragram.json` names them."""
        self._beside.values = replace(self.values, tasks=tuple(sorted({*self.values.tasks, *tasks})))

    def write_beside(self, folder: Path) -> dict[str, Any]:
        """Write the heads; returns the entries of `st_paragram.json`."""
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in self.heads.state_dict().items()}
        save_file(state, folder / _HEADS)
        return asdict(self.values)

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

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("muse-cnn", device="cpu")
        >>> len(model.encode_answers(["She did."], contexts=["Who wrote it? She did."]))
        1
    """

    @property
    def sentencepiece(self) -> Tokenizer:
        """The tokenizer."""
        return cast("Tokenizer", self._beside.tokenizer)

    @property
    def values(self) -> DualEncoderValues:
        """What `st_paragram.json` says."""
        return cast("DualEncoderValues", self._beside.values)

    def write_beside(self, folder: Path) -> dict[str, Any]:
        """Write heads and vocabulary; returns the entries of `st_paragram.json`."""
        (folder / tokenizer_file(self.sentencepiece.kind)).write_bytes(self.sentencepiece.content)
        return super().write_beside(folder)

    @property
    def vectors(self) -> SentenceVectors:
        """Vectors of sentences from flat ids, as training makes them."""
        return SentenceVectors(self, special_ids(self.sentencepiece), self.values.max_length)

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
        settings = pipeline_settings(encoder) | {"truncate_dim": None}
        modules = [*encoder, towers(dim)]
        heads = TaskHeads(dim, contexts=False)
        return cls.of(modules, heads, TowersValues(dim), device=str(encoder.device), **settings)

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


def read_beside(pipeline: SentenceTransformer, folder: Path, values: dict[str, Any]) -> WithClassifier:
    """The model of a pipeline that was read, and of what is next to it."""
    finished = values.get("encoder") == "finished"
    kind: Any = TowersValues if finished else DualEncoderValues
    with configured(folder):
        stored = pydantic.TypeAdapter(kind).validate_python(values)
        stored = replace(stored, tasks=tuple(stored.tasks))
        if min(stored.dim, *(() if finished else (stored.max_length - 3, stored.context_length)), 1) < 1:
            raise ValueError("a size below 1")
    last, first = pipeline[-1], pipeline[0]
    if not isinstance(last, Router) or _design(last) != _design(towers(stored.dim)):
        seen = f"its last module is not the towers of {stored.dim} components"
        raise ModelDirectoryError(f"{folder}: {seen}; save it again")
    heads = TaskHeads(stored.dim, contexts=not finished)
    if not finished or "nli" in stored.tasks:
        heads.load_state_dict(read_tensors(folder, _HEADS, heads.state_dict()))
    given: dict[str, Any] = {"device": str(pipeline.device), **pipeline_settings(pipeline)}
    if finished:
        return EncoderWithTowers.of(list(pipeline), heads.eval(), stored, **given)
    if not is_t5(first) and not isinstance(pipeline[1], ConvolutionEncoder):
        raise ModelDirectoryError(f"{folder}: a CNN of an earlier version, which is not read any more; train it again")
    if is_t5(first) and pipeline.max_seq_length != stored.max_length:
        raise damaged(folder, f"max_length is {stored.max_length}, not the pipeline's")
    path = file_of(folder, tokenizer_file(SentencePieceTokenizer.kind))
    with refused(ModelDirectoryError, path, "not the vocabulary of this model", "save the model again", SettingsError):
        tokenizer = SentencePieceTokenizer(path.read_bytes(), **stored.tokenizer_options)
    return DualEncoder.of(list(pipeline), heads.eval(), stored, tokenizer, **given)


def _design(router: Router) -> tuple[object, ...]:
    """All that makes two routers alike but their numbers: settings, the modules of each route, shapes."""
    routes = {
        route: [(type(each), cast("Any", each).get_config_dict()) for each in cast("Iterable[nn.Module]", modules)]
        for route, modules in router.sub_modules.items()
    }
    return router.get_config_dict(), routes, {name: tensor.shape for name, tensor in router.state_dict().items()}
