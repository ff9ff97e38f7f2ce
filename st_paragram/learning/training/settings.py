"""The settings of a training run of averaging models. Nothing here needs torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from st_paragram.core.files import folder_for_file
from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.preparation.settings import Tokens

Encoder = Literal["sp", "word", "trigram", "blstm", "blstm-word"]
#: What the encoders read, by the kind of the tokenizer.
TOKENS_OF: dict[Encoder, Tokens] = {
    "sp": "sentencepiece",
    "word": "word",
    "trigram": "trigram",
    "blstm": "sentencepiece",
    "blstm-word": "word",
}
#: The encoders that know the order of tokens.
RECURRENT: tuple[Encoder, ...] = ("blstm", "blstm-word")


@settings
class TrainingSettings:
    """Settings of a training run; the defaults are the paper's (EMNLP 2022, section 3).

    Example:
        >>> from st_paragram import TrainingSettings
        >>> TrainingSettings(dim=300, epochs=10).margin
        0.4
    """

    family: ClassVar[str] = "psp"

    encoder: Encoder = setting(
        "sp",
        "encoder: the mean of sentencepiece embeddings (sp), word embeddings (word) or character trigram "
        "embeddings (trigram), or the mean of the states of a bidirectional LSTM over sentencepiece pieces "
        "(blstm) or words (blstm-word)",
    )
    dim: int = setting(1024, "components of an embedding", ge=1)
    hidden_dim: int = setting(
        150, "LSTM units per direction; embeddings of blstm and blstm-word have twice as many components", ge=1
    )
    scramble: float = setting(
        0.0,
        "probability of shuffling the tokens of a sentence in training, drawn again in each epoch; only "
        "for blstm and blstm-word, because a mean ignores order",
        ge=0,
        le=1,
    )
    dropout: float = setting(0.0, "dropout probability of the components of a piece's embedding", ge=0, lt=1)
    margin: float = setting(
        0.4, "margin of the loss: minimum difference between the cosine with a translation and with a negative", gt=0
    )
    learning_rate: float = setting(1e-3, "learning rate of Adam; with a schedule, its maximum", gt=0)
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "constant",
        "learning rate schedule after warm-up: constant, falling to 0 at the last step (linear, cosine), "
        "or proportional to 1 / sqrt(step) (inverse_sqrt)",
    )
    warmup: float = setting(
        0.0, "share of the steps, at the start, over which the learning rate grows from 0", ge=0, lt=1
    )
    epochs: float = setting(25.0, "passes over the pairs; fractions are allowed", gt=0)
    batch_size: int = setting(128, "pairs of a mini-batch", ge=2)
    megabatch_size: int = setting(60, "maximum M, the number of mini-batches that are searched for negatives", ge=1)
    anneal_interval: int = setting(
        150, "mini-batches after which M, which starts at 1, grows by one; 0: maximum M from the start", ge=0
    )
    negatives: Literal["opposite", "both"] = setting(
        "opposite",
        "source of negatives: the most similar sentences of the other side (opposite), or of both sides (both, the "
        "paper's choice for paraphrases)",
    )
    mask_duplicates: bool = setting(
        True,
        "pairs that share a text are never each other's negatives",
        option="--keep-duplicates",
        option_help="let pairs that share a text be each other's negatives, as the authors' code does",
    )
    mining_precision: Literal["auto", "float32"] = setting(
        "auto", "number type for similarities in the search for negatives; auto: the fastest on the device, rounded"
    )
    init: str = setting(
        "",
        "model to continue from, or to start another language from: pieces in its vocabulary start with "
        "its rows, other pieces at random; or a non-averaging model of at least `dim` components, whose "
        "embeddings of the pieces are the start",
        metavar="MODEL",
    )
    teacher: str = setting(
        "",
        "file of another model's embeddings of the store's sentences (.npy), which the student learns to match",
        metavar="FILE",
    )
    teacher_weight: float = setting(1.0, "weight of the teacher's loss, the mean of 1 - cosine with its vectors", gt=0)
    seed: int = setting(0, "seed of all random numbers", ge=0, lt=1 << 32)
    evaluate_steps: int = setting(
        0, "steps between evaluations on the development pairs; 0: at the end of each epoch", ge=0
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU if available")

    def __post_init__(self) -> None:
        """Check what concerns several settings, and files."""
        if self.scramble and self.encoder not in RECURRENT:
            seen = f"scramble is {self.scramble:g}, but {self.encoder} knows no order"
            raise SettingsError(f"{seen}; it is for {' and '.join(RECURRENT)}")
        if self.init and self.encoder in RECURRENT:
            raise SettingsError(f"init is {self.init!r}, but only an averaging model begins with another's rows")
        if self.teacher and (wrong := folder_for_file(self.teacher, "a .npy file")):
            raise SettingsError(f"{wrong}; name a file")
        if self.teacher and not Path(self.teacher).is_file():
            raise SettingsError(f"{self.teacher}: no such file of a teacher's vectors; check the path")

    @property
    def extent(self) -> str:
        """How long a run is, in words."""
        return f"{self.epochs:g} epochs"

    @property
    def tokens(self) -> Tokens:
        """What the encoder reads."""
        return TOKENS_OF[self.encoder]
