"""The settings of a training run of a dual encoder on several tasks. Nothing here needs torch."""

from __future__ import annotations

from typing import ClassVar, Literal

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.tools.preparation.settings import Tokens

Task = Literal["translation", "qa", "response", "nli"]
TASKS: tuple[Task, ...] = ("translation", "qa", "response", "nli")


@settings
class DualEncoderSettings:
    """What a training run of a multilingual dual encoder is made of (ACL 2020); docs/muse.md says why."""

    family: ClassVar[str] = "muse"

    architecture: Literal["cnn", "transformer"] = setting(
        "cnn",
        "the encoder: convolutions, whose cost grows with the length of a text, or a transformer, better and more "
        "expensive",
    )
    dim: int = setting(512, "components of an embedding, of pieces and of sentences", least=1)
    layers: int = setting(2, "layers of the encoder; a cnn has 1 or 2", least=1)
    filters: int = setting(256, "filters of each of the four widths of a convolution", least=1)
    heads: int = setting(8, "heads of an attention of the transformer", least=1)
    ffn_dim: int = setting(2048, "units of the transformer's feed-forward networks", least=1)
    dropout: float = setting(0.1, "probability that a component is dropped in training", least=0, below=1)
    max_length: int = setting(100, "pieces of a text that are read, its ends included", least=4)
    context_length: int = setting(256, "pieces of an answer's context that are read", least=1)
    keep_bag: bool = setting(
        True,
        "the mean of the embeddings of a text's pieces (the bag) is part of its embedding",
        option="--no-bag",
        option_help="leave the mean of a text's embeddings out of its embedding: the network alone, as in the paper",
    )
    gate: float = setting(
        0.1, "with the mean, how long the network's part is beside it before training; then it is learnt", above=0
    )
    scale: float = setting(20.0, "what cosines are multiplied by in the softmax over a batch", above=0)
    margin: float = setting(0.3, "what is subtracted from the cosine of a sentence and its translation", least=0)
    qa_margin: float = setting(0.0, "what is subtracted from the cosine of a question and its answer", least=0)
    translation_share: float = setting(0.4, "share of the steps on translations, where there are all tasks", least=0)
    qa_share: float = setting(0.35, "share of the steps on questions and answers", least=0)
    response_share: float = setting(0.1, "share of the steps on utterances and responses", least=0)
    nli_share: float = setting(0.15, "share of the steps on inference", least=0)
    language_power: float = setting(
        0.5, "a language's share of its task goes with its number of pairs to this power", least=0, most=1
    )
    batch_size: int = setting(256, "pairs of a batch, all of one task and language", least=2)
    length_buckets: int = setting(
        4, "batches are drawn many at a time, sorted by length into so many parts, so that less is padded", least=1
    )
    similar_batches: int = setting(
        8,
        "each of these parts is cut into so many batches of texts that are like each other, by the embeddings that "
        "training began with: harder negatives at no cost; 1: at random",
        least=1,
    )
    negatives: Literal["batch", "mined"] = setting(
        "batch",
        "what a text is told apart from: the other pairs of its batch; or, mined, also the text most like it among all "
        "batches that were drawn together (length_buckets times similar_batches), found with the model as it is then",
    )
    steps: int = setting(20_000, "updates of the whole run", least=1)
    learning_rate: float = setting(1e-3, "largest learning rate of Adam", above=0)
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "linear", "the learning rate after its warm-up"
    )
    warmup_updates: int = setting(500, "updates in which the learning rate first grows from 0", least=0)
    weight_decay: float = setting(0.0, "decoupled weight decay", least=0)
    clip_norm: float = setting(1.0, "largest norm of a gradient; 0: no limit", least=0)
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto", "what matrices are multiplied in; auto: bfloat16 on a GPU that has it, float32 elsewhere"
    )
    init: str = setting(
        "",
        "an averaging model of `dim` components, such as p-sp-mul, whose rows training begins with where pieces are "
        "the same",
        metavar="MODEL",
        option="--init --start-from",
    )
    seed: int = setting(0, "seed of all random numbers", least=0, below=1 << 32)
    evaluate_steps: int = setting(
        0, "updates between evaluations on the development pairs, and checkpoints; 0: ten in all", least=0
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU where there is one")

    def __post_init__(self) -> None:
        """Check what concerns several settings.

        Raises:
            SettingsError: Heads that do not divide the states, or a cnn of more than two layers.
        """
        if self.architecture == "transformer" and self.dim % self.heads:
            raise SettingsError(f"dim is {self.dim} and heads {self.heads}; dim must be a multiple of heads")
        if self.architecture == "cnn" and self.layers > 2:
            raise SettingsError(f"layers are {self.layers}; a cnn has 1 or 2")
        if not sum(self.shares.values()) > 0:
            raise SettingsError("the shares of all tasks are 0; give one of them a share")

    @property
    def extent(self) -> str:
        """How long a run is, in words."""
        return f"{self.steps:,} steps"

    @property
    def tokens(self) -> Tokens:
        """What the encoders read."""
        return "sentencepiece"

    @property
    def shares(self) -> dict[Task, float]:
        """The share of each task."""
        return {task: getattr(self, f"{task}_share") for task in TASKS}
