"""Settings of training and generation, and the parts of each objective.

Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.tools.preparation.settings import Tokens

#: The sides of a pair; English is side a.
Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")

Objective = Literal[
    "bgt",
    "no-langvars",
    "no-prior",
    "bilingual-trans",
    "english-trans",
    "english-ae",
    "english-vae",
]


@dataclass(frozen=True)
class ObjectiveParts:
    """The parts of an objective."""

    # latent variables are random, and their divergence from N(0, I) is part of the loss
    prior: bool
    languages: bool  # each language has a separate latent variable
    generators: tuple[Side, ...]  # sides generated from the latent variables of the pair
    translators: tuple[Side, ...]  # sides generated from the other side's meaning
    weight: float = 1.0  # of the translation losses
    batch_tokens: int = 25_000  # the paper's batch size


#: EMNLP 2020, section 4. If a shared encoder only translates, each direction has half the weight,
#: as in the authors' code. The paper does not give a batch size for the autoencoders.
OBJECTIVES: dict[Objective, ObjectiveParts] = {
    "bgt": ObjectiveParts(True, True, SIDES, SIDES),
    "no-langvars": ObjectiveParts(True, False, (), SIDES, 0.5),
    "no-prior": ObjectiveParts(False, True, SIDES, SIDES, batch_tokens=50_000),
    "bilingual-trans": ObjectiveParts(False, False, (), SIDES, 0.5, 50_000),
    "english-trans": ObjectiveParts(False, False, (), ("b",), batch_tokens=50_000),
    "english-ae": ObjectiveParts(False, False, ("a",), ()),
    "english-vae": ObjectiveParts(True, False, ("a",), ()),
}


def other(side: Side) -> Side:
    """The other side of a pair."""
    return "b" if side == "a" else "a"


@settings
class GenerativeSettings:
    """Settings of a training run of a generative model.

    The defaults are the paper's (EMNLP 2020, section 4). The dropout is that of the authors' code.
    """

    family: ClassVar[str] = "bgt"
    tokens: ClassVar[Tokens] = "sentencepiece"

    objective: Objective = setting(
        "bgt",
        "model to train: the full model (bgt), without language variables (no-langvars) or without"
        " a prior (no-prior), or a baseline: translation in both directions (bilingual-trans) or"
        " from English (english-trans), or an English autoencoder without a prior (english-ae) or"
        " with a prior (english-vae)",
    )
    latent: Literal["sample", "mean"] = setting(
        "sample",
        "decoder input: samples of the latent variables, as in the paper, or their means, as in the"
        " paper's code",
    )
    injection: Literal["attention+logit", "attention", "logit"] = setting(
        "attention+logit",
        "where latent variables enter a decoder: after its self-attention, at its logits, or both",
    )
    latent_dim: int = setting(
        1024, "dimensions of a sentence embedding, and of each language variable", ge=1
    )
    dim: int = setting(1024, "dimensions of the transformer states", ge=1)
    ffn_dim: int = setting(1024, "feed-forward units of the transformers", ge=1)
    heads: int = setting(8, "attention heads of the transformers", ge=1)
    encoder_layers: int = setting(5, "layers of the encoders", ge=1)
    decoder_layers: int = setting(1, "layers of the decoders", ge=1)
    dropout: float = setting(0.3, "dropout probability", ge=0, lt=1)
    max_length: int = setting(512, "maximum tokens per sentence, including the end marker", ge=2)
    label_smoothing: float = setting(0.1, "label smoothing of the translation losses", ge=0, lt=1)
    translation_weight: float = setting(
        1.0, "weight of the translation losses relative to the variational bound (ELBO)", ge=0
    )
    anneal_updates: int = setting(
        65536,
        "updates over which the weight of the divergence from the prior (KL) grows from 0 to 1; 0:"
        " 1 from the start",
        ge=0,
    )
    candidates: int = setting(
        0,
        "ids sampled for each batch to represent the rest of the vocabulary in the softmax; 0:"
        " softmax over the whole vocabulary",
        ge=0,
    )
    learning_rate: float = setting(
        5e-4, "learning rate of Adam; with a schedule, its maximum", gt=0
    )
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "inverse_sqrt",
        "learning rate schedule after warm-up: constant, falling to 0 at the last update (linear,"
        " cosine), or proportional to 1 / sqrt(update) (inverse_sqrt)",
    )
    warmup_updates: int = setting(
        4000, "updates at the start over which the learning rate grows from 0", ge=0
    )
    weight_decay: float = setting(0.0, "decoupled weight decay (0.0001 in the paper's code)", ge=0)
    clip_norm: float = setting(
        0.0, "maximum gradient norm (25 in the paper's code); 0: no limit", ge=0
    )
    epochs: float = setting(20.0, "passes over the pairs; fractions are allowed", gt=0)
    batch_tokens: int = setting(
        0,
        "maximum batch size: number of sentences times the tokens of the longest sentence, on the"
        " longer side; 0: as in the paper, 50,000 for english-trans, bilingual-trans and no-prior"
        " and 25,000 for others",
        ge=0,
    )
    min_pieces: int = setting(
        5, "minimum tokens per training sentence; other pairs are left out", ge=0
    )
    max_pieces: int = setting(
        100, "maximum tokens per training sentence; other pairs are left out; 0: no limit", ge=0
    )
    accumulate: int = setting(
        1, "batches, of different lengths, whose gradients are combined in one update", ge=1
    )
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto",
        "number type of matrix products; auto: bfloat16 on a GPU that supports it, otherwise"
        " float32",
    )
    init: str = setting(
        "",
        "averaging model with `dim` dimensions, to initialize shared tokens of the semantic"
        " encoder",
        metavar="MODEL",
    )
    seed: int = setting(0, "seed of all random numbers", ge=0, lt=1 << 32)
    held_out: int = setting(
        500,
        "pairs held out of training, at most a twentieth of all, or one; the checkpoint with the"
        " lowest loss on them is saved; 0: none, and the last checkpoint is saved",
        ge=0,
    )
    evaluate_steps: int = setting(
        0, "updates between evaluations on the development pairs; 0: at the end of each epoch", ge=0
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU if available")

    def __post_init__(self) -> None:
        """Check combinations of settings."""
        if self.dim % self.heads:
            raise SettingsError(
                f"dim is {self.dim} and heads {self.heads}; dim must be a multiple of heads"
            )
        if self.dim % 2:
            raise SettingsError(
                f"dim is {self.dim}; position sines and cosines need an even number"
            )

    @property
    def extent(self) -> str:
        """The length of a run in words."""
        return "1 epoch" if self.epochs == 1 else f"{self.epochs:g} epochs"


Task = Literal["reconstruct", "translate", "transfer"]
TASKS: tuple[Task, ...] = ("reconstruct", "translate", "transfer")

#: Advice for a model that cannot generate.
NEEDED = "generate needs a directory made by `st-paragram train bgt`"


@settings
class GenerationSettings:
    """Settings of generation; beam and length are those of the authors' code."""

    beam: int = setting(
        5, "beam width: hypotheses kept at each step; 1: always the best next token", ge=1
    )
    max_length: int = setting(
        200, "maximum tokens per generated sentence, up to the model's number of positions", ge=1
    )
    length_penalty: float = setting(
        1.0,
        "length penalty: a sentence's log probability is divided by its length to this power; 0"
        " favors short sentences",
        ge=0,
    )
    batch_size: int = setting(64, "sentences generated together", ge=1)
