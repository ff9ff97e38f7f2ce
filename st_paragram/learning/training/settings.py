"""The settings of a training run of averaging models. Nothing here needs torch."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Literal

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.tools.preparation.settings import Tokens

_MOST_DIMS = 15
Encoder = Literal["sp", "word", "trigram", "blstm"]


@settings
class TrainingSettings:
    """What a training run is made of; the defaults are the paper's (EMNLP 2022, section 3)."""

    family: ClassVar[str] = "psp"
    #: Settings that are kept only where they differ from their defaults, so that records stay what they were.
    later: ClassVar[tuple[str, ...]] = (
        "teacher",
        "teacher_weight",
        "teacher_every",
        "margin_weight",
        "matryoshka_dims",
    )

    encoder: Encoder = setting(
        "sp",
        "what the embedding of a sentence is: the mean of the embeddings of its sentencepiece pieces (sp), of its "
        "words (word) or of its character trigrams (trigram), or the mean of the states of a bidirectional LSTM over "
        "its sentencepiece pieces (blstm)",
    )
    dim: int = setting(1024, "components of an embedding", least=1)
    hidden_dim: int = setting(
        150, "units of the LSTM in each direction; an embedding of blstm has twice as many components", least=1
    )
    scramble: float = setting(
        0.0,
        "probability that the pieces of a sentence are put into random order in training, drawn anew in each epoch; "
        "for blstm alone, because a mean knows no order",
        least=0,
        most=1,
    )
    dropout: float = setting(
        0.0, "probability that a component of a piece's embedding is dropped in training", least=0, below=1
    )
    margin: float = setting(
        0.4, "margin of the loss: how much higher the cosine with a translation must be than with a negative", above=0
    )
    learning_rate: float = setting(1e-3, "learning rate of Adam; with a schedule, its largest value", above=0)
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "constant",
        "what the learning rate does after its warm-up: it stays (constant), falls to 0 at the last step (linear, "
        "cosine), or falls as 1 / the square root of the number of the step (inverse_sqrt)",
    )
    warmup: float = setting(
        0.0, "share of the steps, at the beginning, in which the learning rate grows from 0", least=0, below=1
    )
    epochs: float = setting(25.0, "passes over the pairs; fractions are allowed", above=0)
    batch_size: int = setting(128, "pairs of a mini-batch", least=2)
    megabatch_size: int = setting(
        60, "largest M; M is the number of mini-batches among which negatives are sought", least=1
    )
    anneal_interval: int = setting(
        150,
        "M begins with 1 and grows by one after this many mini-batches; 0: M is at its largest from the start",
        least=0,
    )
    negatives: Literal["opposite", "both", "random"] = setting(
        "opposite",
        "where negatives come from: the most similar sentences of the other side of the pairs (opposite), those of "
        "both sides (both, the paper's choice for paraphrases), or any sentences of the other side (random)",
    )
    mask_duplicates: bool = setting(
        True,
        "pairs that share a text are never each other's negatives",
        option="--keep-duplicates",
        option_help="let pairs that share a text be each other's negatives, as the authors' code does",
    )
    optimizer: Literal["row-lazy", "dense"] = setting(
        "row-lazy",
        "which rows of the table Adam moves: those of the batch alone (row-lazy), or all (dense, slower); without "
        "dropout, both give the same model up to rounding",
    )
    mining_precision: Literal["auto", "float32", "tf32", "bfloat16", "int8"] = setting(
        "auto",
        "type of the numbers in which similarities are computed while negatives are sought; auto: the fastest that the "
        "device has",
    )
    init: str = setting(
        "",
        "a model to continue from, or to begin with for another language: pieces that are also in its vocabulary begin "
        "with its rows, all others at random; or a model that does not average, of at least `dim` components, whose "
        "vectors of the pieces training begins with",
        metavar="MODEL",
    )
    teacher: str = setting(
        "",
        "a folder of vectors of the store's sentences, which another model made: the student's vectors are drawn to "
        "them",
        metavar="FOLDER",
    )
    teacher_weight: float = setting(
        1.0, "weight of the teacher in the loss: of the mean of 1 - the cosine with its vectors", above=0
    )
    teacher_every: int = setting(
        1, "compare every Nth pair of a mini-batch with the teacher, which takes an Nth of the time", least=1
    )
    margin_weight: float = setting(
        1.0, "weight of the margin loss; 0 with a teacher: the teacher alone, and no negatives are sought", least=0
    )
    matryoshka_dims: str = setting(
        "",
        "rising numbers of components, with commas between them: the loss is the mean of that of the first so many and "
        "of all, so that embeddings can be cut to them",
        metavar="N,N",
    )
    seed: int = setting(0, "seed of all random numbers", least=0, below=1 << 32)
    evaluate_steps: int = setting(
        0, "steps between evaluations on the development pairs; 0: one at the end of each epoch", least=0
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU where there is one")

    def __post_init__(self) -> None:
        """Check what concerns several settings.

        Raises:
            SettingsError: An encoder that knows no order is to be scrambled, or one is to begin with another's rows;
                nothing is to be learned; embeddings cannot be cut like that.
        """
        if self.scramble and self.encoder != "blstm":
            raise SettingsError(f"scramble is {self.scramble:g}, but {self.encoder} knows no order; it is for blstm")
        if self.init and self.encoder == "blstm":
            raise SettingsError(f"init is {self.init!r}, but only an averaging model begins with another's rows")
        dims, largest = self.matryoshka, 2 * self.hidden_dim if self.encoder == "blstm" else self.dim
        if any(small >= large for small, large in pairwise((0, *dims, largest))) or len(dims) > _MOST_DIMS:
            seen = f"matryoshka_dims is {self.matryoshka_dims!r}"
            raise SettingsError(f"{seen}; give at most {_MOST_DIMS} rising numbers below {largest}, such as 64,128,256")
        if not self.margin_weight and not self.teacher:
            raise SettingsError(
                "margin_weight is 0, and there is no teacher to learn from; name one, or raise the weight"
            )

    @property
    def matryoshka(self) -> tuple[int, ...]:
        """Numbers of components that embeddings can be cut to.

        Raises:
            SettingsError: One is not a whole number.
        """
        try:
            return tuple(int(part) for part in self.matryoshka_dims.split(",") if part.strip())
        except ValueError:
            seen = f"matryoshka_dims is {self.matryoshka_dims!r}"
            raise SettingsError(f"{seen}; give numbers with commas between them, such as 64,128,256") from None

    @property
    def extent(self) -> str:
        """How long a run is, in words."""
        return f"{self.epochs:g} epochs"

    @property
    def tokens(self) -> Tokens:
        """What the encoder reads."""
        return TOKENS_OF[self.encoder]


#: What the encoders read, by the kind of the tokenizer.
TOKENS_OF: dict[Encoder, Tokens] = {
    "sp": "sentencepiece",
    "word": "word",
    "trigram": "trigram",
    "blstm": "sentencepiece",
}
