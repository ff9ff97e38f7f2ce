"""The settings of a training run of a dual encoder on several tasks. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.tools.preparation.settings import Tokens

#: The columns of a file of each task other than translation; those in brackets may be left out.
COLUMNS = {
    "qa": "question TAB answer [TAB context]",
    "response": "utterance TAB response",
    "nli": "label TAB premise TAB hypothesis",
}


@settings
class DualEncoderSettings:
    """Settings of a training run of a multilingual dual encoder (ACL 2020); docs/muse.md gives the reasons."""

    family: ClassVar[str] = "muse"
    tokens: ClassVar[Tokens] = "sentencepiece"

    architecture: Literal["cnn", "transformer"] = setting(
        "cnn",
        "encoder: convolutions, whose cost grows with text length, or a transformer, which is better and "
        "more expensive",
    )
    dim: int = setting(512, "components of an embedding, for pieces and for sentences", ge=1)
    layers: int = setting(2, "layers of the encoder", ge=1)
    filters: int = setting(256, "filters of each of the four widths of a convolution", ge=1)
    heads: int = setting(8, "attention heads of the transformer", ge=1)
    ffn_dim: int = setting(2048, "feed-forward units of the transformer", ge=1)
    dropout: float = setting(0.1, "dropout probability", ge=0, lt=1)
    max_length: int = setting(100, "maximum pieces per text, including its ends", ge=4)
    context_length: int = setting(256, "maximum pieces per answer context", ge=1)
    keep_bag: bool = setting(
        True,
        "the mean of the piece embeddings (the bag) is part of a text's embedding",
        option="--no-bag",
        option_help="leave the mean of the piece embeddings out: the network alone, as in the paper",
    )
    gate: float = setting(
        0.1, "initial weight of the network output relative to the mean; learned during training", gt=0
    )
    scale: float = setting(20.0, "factor for cosines in the softmax over a batch", gt=0)
    margin: float = setting(0.3, "margin subtracted from the cosine of a sentence and its translation", ge=0)
    qa_margin: float = setting(0.0, "margin subtracted from the cosine of a question and its answer", ge=0)
    translation_share: float = setting(0.4, "share of the steps on translations, if all tasks are present", ge=0)
    qa_share: float = setting(0.35, "share of the steps on questions and answers", ge=0)
    response_share: float = setting(0.1, "share of the steps on utterances and responses", ge=0)
    nli_share: float = setting(0.15, "share of the steps on inference", ge=0)
    language_power: float = setting(
        0.5, "exponent of a language's number of pairs, which sets its share of a task", ge=0, le=1
    )
    batch_size: int = setting(256, "pairs per batch, all of one task and language", ge=2)
    length_buckets: int = setting(
        4, "number of length groups into which jointly drawn batches are sorted, to reduce padding", ge=1
    )
    steps: int = setting(20_000, "total number of updates", ge=1)
    learning_rate: float = setting(1e-3, "maximum learning rate of Adam", gt=0)
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "linear", "learning rate schedule after warm-up"
    )
    warmup_updates: int = setting(500, "updates at the start over which the learning rate grows from 0", ge=0)
    weight_decay: float = setting(0.0, "decoupled weight decay", ge=0)
    clip_norm: float = setting(1.0, "maximum gradient norm; 0: no limit", ge=0)
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto", "number type of matrix products; auto: bfloat16 on a GPU that supports it, otherwise float32"
    )
    init: str = setting(
        "",
        "averaging model of `dim` components, such as p-sp-mul, whose rows initialize the pieces that both "
        "vocabularies share",
        metavar="MODEL",
        option="--init --start-from",
    )
    seed: int = setting(0, "seed of all random numbers", ge=0, lt=1 << 32)
    evaluate_steps: int = setting(
        0, "updates between evaluations on the development pairs, with checkpoints; 0: ten per run", ge=0
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU if available")

    def __post_init__(self) -> None:
        """Check what concerns several settings."""
        if self.architecture == "transformer" and self.dim % self.heads:
            raise SettingsError(f"dim is {self.dim} and heads {self.heads}; dim must be a multiple of heads")
        if not sum(self.shares.values()) > 0:
            raise SettingsError("the shares of all tasks are 0; give one of them a share")

    @property
    def extent(self) -> str:
        """How long a run is, in words."""
        return f"{self.steps:,} steps"

    @property
    def shares(self) -> dict[str, float]:
        """The share of each task."""
        return {task: getattr(self, f"{task}_share") for task in ("translation", *COLUMNS)}


@dataclass(frozen=True)
class MuseData:
    """What a dual encoder is trained on besides translations, of English and `languages` (all if none is named)."""

    tasks: Mapping[str, Path] = field(default_factory=dict)  # folders of files LANG.tsv by the tasks of `COLUMNS`
    languages: Sequence[str] = ()


@settings
class TowersSettings:
    """Settings of a training of towers over a finished encoder."""

    epochs: int = setting(4, "passes over the questions and responses; the best of them is kept", ge=1)
    batch_size: int = setting(512, "pairs per batch, all of one task and language", ge=16)
    learning_rate: float = setting(1e-4, "maximum learning rate of the towers; it falls to 0", gt=0)
    scale: float = setting(30.0, "factor for cosines in the softmax over a batch", gt=0)
    nli_epochs: int = setting(8, "passes over the pairs of inference; the best of them is kept", ge=1)
    nli_learning_rate: float = setting(1e-3, "maximum learning rate of the classifier; it falls to 0", gt=0)
    nli_dropout: float = setting(0.3, "dropout probability of the classifier", ge=0, lt=1)
    held_out: float = setting(0.05, "share of the rows that is held out, to choose the epoch", gt=0, lt=0.5)
    seed: int = setting(0, "seed of all random numbers", ge=0)
