"""The settings of a training run of a dual encoder on several tasks. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.tools.preparation.settings import Tokens

#: Task -> columns of its files, for tasks other than translation; columns in brackets are optional.
COLUMNS = {
    "qa": "question TAB answer [TAB context]",
    "response": "utterance TAB response",
    "nli": "label TAB premise TAB hypothesis",
}


#: Names of the tasks other than translation.
TASK_NAMES = {"qa": "questions and answers", "response": "responses", "nli": "inference"}

NO_TASK = "no task has both data and a share of the steps; add data, or change the shares"


@settings
class DualEncoderSettings:
    """Settings of a training run of a multilingual dual encoder (ACL 2020)."""

    family: ClassVar[str] = "muse"
    tokens: ClassVar[Tokens] = "sentencepiece"

    architecture: Literal["cnn", "transformer"] = setting(
        "cnn",
        "encoder: convolutions (cnn), with a cost proportional to length, or a transformer, better"
        " but more expensive",
    )
    dim: int = setting(512, "dimensions of token and sentence embeddings", ge=1)
    layers: int = setting(2, "layers of the encoder", ge=1)
    filters: int = setting(256, "filters for each of the four widths of a convolution", ge=1)
    heads: int = setting(8, "attention heads of the transformer", ge=1)
    ffn_dim: int = setting(2048, "feed-forward units of the transformer", ge=1)
    dropout: float = setting(0.1, "dropout probability", ge=0, lt=1)
    max_length: int = setting(100, "maximum tokens per text, including the two end markers", ge=4)
    context_length: int = setting(256, "maximum tokens per answer context", ge=1)
    keep_bag: bool = setting(
        True,
        "the mean of the token embeddings (the bag) is part of a text's embedding",
        option="--no-bag",
        option_help="leave out the mean of the token embeddings: only the network, as in the paper",
    )
    gate: float = setting(
        0.1,
        "initial weight of the network output relative to the mean; learned during training",
        gt=0,
        unused_with=("keep_bag", False),
    )
    scale: float = setting(20.0, "factor for cosines in the softmax over a batch", gt=0)
    margin: float = setting(
        0.3, "margin subtracted from the cosine of a sentence and its translation", ge=0
    )
    qa_margin: float = setting(
        0.0, "margin subtracted from the cosine of a question and its answer", ge=0
    )
    translation_share: float = setting(
        0.4, "share of training steps on translations, if all tasks are present", ge=0
    )
    qa_share: float = setting(0.35, "share of training steps on questions and answers", ge=0)
    response_share: float = setting(
        0.1, "share of training steps on utterances and responses", ge=0
    )
    nli_share: float = setting(0.15, "share of training steps on inference", ge=0)
    language_power: float = setting(
        0.5,
        "exponent applied to a language's number of pairs, to set its share of a task",
        ge=0,
        le=1,
    )
    held_out: float = setting(
        0.1,
        "share of each task's rows to score the model on instead of training, at most about 1,000"
        " per language; 0: none",
        ge=0,
        lt=0.5,
    )
    batch_size: int = setting(256, "pairs per batch, all of one task and language", ge=2)
    length_buckets: int = setting(
        4, "batches drawn together and sorted by length, to reduce padding", ge=1
    )
    steps: int = setting(20_000, "total number of updates", ge=1)
    learning_rate: float = setting(1e-3, "maximum learning rate of Adam", gt=0)
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "linear", "learning rate schedule after warm-up"
    )
    warmup_updates: int = setting(
        500, "updates at the start over which the learning rate grows from 0", ge=0
    )
    weight_decay: float = setting(0.0, "decoupled weight decay", ge=0)
    clip_norm: float = setting(1.0, "maximum gradient norm; 0: no limit", ge=0)
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto",
        "number type of matrix products; auto: bfloat16 on a GPU that supports it, otherwise"
        " float32",
    )
    init: str = setting(
        "",
        "averaging model with `dim` dimensions, such as p-sp-mul, to initialize the tokens shared"
        " by both vocabularies",
        metavar="MODEL",
        option="--init --start-from",
    )
    seed: int = setting(0, "seed of all random numbers", ge=0, lt=1 << 32)
    evaluate_steps: int = setting(
        0,
        "updates between evaluations on the development pairs, with checkpoints; 0: ten per run",
        ge=0,
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU if available")

    def __post_init__(self) -> None:
        """Check combinations of settings."""
        if self.architecture == "transformer" and self.dim % self.heads:
            raise SettingsError(
                f"dim is {self.dim} and heads {self.heads}; dim must be a multiple of heads"
            )
        if not sum(self.shares.values()) > 0:
            raise SettingsError("the shares of all tasks are 0; give at least one task a share")

    @property
    def extent(self) -> str:
        """The length of a run in words."""
        return f"{self.steps:,} steps"

    @property
    def shares(self) -> dict[str, float]:
        """The share of each task."""
        return {
            "translation": self.translation_share,
            "qa": self.qa_share,
            "response": self.response_share,
            "nli": self.nli_share,
        }


@dataclass(frozen=True)
class MuseData:
    """Training data other than translations, for a `TrainingRun` of the family muse.

    Attributes:
        tasks: Folders of files LANG.tsv by task: qa, response or nli.
        languages: Languages other than English; all languages if none is named.

    Examples:
        >>> from pathlib import Path
        >>> from st_paragram import MuseData
        >>> data = MuseData({"qa": Path("questions")}, ["es", "de"])
    """

    tasks: Mapping[str, Path] = field(default_factory=dict)
    languages: Sequence[str] = ()


@settings
class TowersSettings:
    """Settings for training towers on top of a finished encoder."""

    epochs: int = setting(
        4, "passes over the questions and responses; the best epoch is kept", ge=1
    )
    batch_size: int = setting(512, "pairs per batch, all of one task and language", ge=16)
    learning_rate: float = setting(
        1e-4, "maximum learning rate of the towers, which falls to 0", gt=0
    )
    scale: float = setting(30.0, "factor for cosines in the softmax over a batch", gt=0)
    nli_epochs: int = setting(8, "passes over the inference pairs; the best epoch is kept", ge=1)
    nli_learning_rate: float = setting(
        1e-3, "maximum learning rate of the classifier, which falls to 0", gt=0
    )
    nli_dropout: float = setting(0.3, "dropout probability of the classifier", ge=0, lt=1)
    held_out: float = setting(
        0.05, "share of the rows held out to choose the best epoch", gt=0, lt=0.5
    )
    seed: int = setting(0, "seed of all random numbers", ge=0)
