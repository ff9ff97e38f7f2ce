"""The settings of a training run of averaging models. Nothing here needs torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from st_paragram.core.files import NUMPY_SIGNATURE, folder_for_file
from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.families.psp.encoders import (
    AVERAGING_EMBEDDINGS,
    ENCODERS,
    HELP,
    USING_ORDER,
    Encoder,
)

if TYPE_CHECKING:
    from st_paragram.tools.preparation.settings import Tokens


@settings
class TrainingSettings:
    """Settings of a training run; the defaults are the paper's (EMNLP 2022).

    Examples:
        >>> from st_paragram import TrainingSettings
        >>> TrainingSettings(dim=300, epochs=10).margin
        0.4
    """

    family: ClassVar[str] = "psp"

    encoder: Encoder = setting(
        "sp",
        f"encoder: the mean of {HELP}",
    )
    dim: int = setting(1024, "dimensions of an embedding", ge=1)
    hidden_dim: int = setting(
        150,
        "LSTM units per direction; embeddings of blstm and blstm-word have twice as many"
        " dimensions",
        ge=1,
        unused_with=("encoder", *AVERAGING_EMBEDDINGS),
    )
    scramble: float = setting(
        0.0,
        "probability of shuffling a sentence's tokens in training, with a new order in each epoch;"
        f" only for {' and '.join(USING_ORDER)}, because a mean ignores order",
        ge=0,
        le=1,
    )
    dropout: float = setting(
        0.0, "dropout probability of each dimension of a token's embedding", ge=0, lt=1
    )
    margin: float = setting(
        0.4,
        "margin of the loss: required gap between the cosines with the translation and with the"
        " negative",
        gt=0,
    )
    learning_rate: float = setting(
        1e-3, "learning rate of Adam; with a schedule, its maximum", gt=0
    )
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "constant",
        "learning rate schedule after warm-up: constant, falling to 0 at the last step (linear,"
        " cosine), or proportional to 1 / sqrt(step) (inverse_sqrt)",
    )
    warmup: float = setting(
        0.0,
        "share of the steps, at the start, over which the learning rate grows from 0",
        ge=0,
        lt=1,
    )
    epochs: float = setting(25.0, "passes over the pairs; fractions are allowed", gt=0)
    batch_size: int = setting(128, "pairs per mini-batch", ge=2)
    megabatch_size: int = setting(
        60, "maximum M, the number of mini-batches searched for negatives", ge=1
    )
    anneal_interval: int = setting(
        150,
        "mini-batches between increments of M, which starts at 1; 0: maximum M from the start",
        ge=0,
    )
    negatives: Literal["opposite", "both", "random"] = setting(
        "opposite",
        "source of negatives: the most similar sentences of the other side (opposite), or of both"
        " sides (both, the paper's choice for paraphrases), or random sentences of the other side"
        " (random, for comparisons)",
    )
    mask_duplicates: bool = setting(
        True,
        "pairs that share a text are never each other's negatives",
        option="--keep-duplicates",
        option_help=(
            "let pairs that share a text be each other's negatives, as the authors' code does"
        ),
    )
    mining_precision: Literal["auto", "float32"] = setting(
        "auto",
        "number type of similarities in the search for negatives; auto: the device's fastest type,"
        " which rounds",
    )
    init: str = setting(
        "",
        "model to continue from, or to start another language from: tokens in its vocabulary start"
        " with its embeddings, other tokens at random; or a non-averaging model with at least `dim`"
        " dimensions, whose embeddings of the tokens are used",
        metavar="MODEL",
    )
    teacher: str = setting(
        "",
        "teacher's embeddings of the store's sentences, a .npy file, for the student to match",
        metavar="FILE",
    )
    teacher_weight: float = setting(
        1.0,
        "weight of the teacher loss, the mean of 1 - cosine with its vectors",
        gt=0,
        unused_with=("teacher", ""),
    )
    seed: int = setting(0, "seed of all random numbers", ge=0, lt=1 << 32)
    evaluate_steps: int = setting(
        0, "steps between evaluations on the development pairs; 0: at the end of each epoch", ge=0
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU if available")

    def __post_init__(self) -> None:
        """Check combinations of settings, and files."""
        if self.scramble and self.encoder not in USING_ORDER:
            raise SettingsError(
                f"scramble is {self.scramble:g}, but the encoder {self.encoder} ignores order; use"
                f" it with {' or '.join(USING_ORDER)}"
            )
        if self.init and self.encoder not in AVERAGING_EMBEDDINGS:
            raise SettingsError(
                f"init is {self.init!r}, but only averaging models start from another; leave it out"
            )
        if self.teacher:
            _check_teacher(Path(self.teacher))

    @property
    def extent(self) -> str:
        """The length of a run in words."""
        return "1 epoch" if self.epochs == 1 else f"{self.epochs:g} epochs"

    @property
    def tokens(self) -> Tokens:
        """The kind of tokens that the encoder reads."""
        return ENCODERS[self.encoder].tokens


def _check_teacher(path: Path) -> None:
    """Refuse a file of teacher vectors that is not a numpy array."""
    if wrong := folder_for_file(path):
        raise SettingsError(f"{wrong}; name a .npy file of teacher vectors")
    if not path.is_file():
        raise SettingsError(f"{path}: no such file of teacher vectors; check the path")
    with path.open("rb") as file:
        is_numpy = file.read(len(NUMPY_SIGNATURE)) == NUMPY_SIGNATURE
    if not is_numpy:
        raise SettingsError(
            f"{path}: not a .npy file of teacher vectors; make it with st-paragram embed"
        )
