"""The settings of a training run of the bilingual generative transformer. Nothing here needs torch."""

from __future__ import annotations

from typing import ClassVar, Literal

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.generative_objective import Objective
from st_paragram.tools.preparation.settings import Tokens

Injection = Literal["attention+logit", "attention", "logit"]


@settings
class GenerativeSettings:
    """What a training run of a generative model is made of; the defaults are the paper's (EMNLP 2020, section 4)."""

    family: ClassVar[str] = "bgt"

    objective: Objective = setting(
        "bgt",
        "what is trained: the model (bgt), the model without latent variables of the languages (no-langvars) or "
        "without a prior (no-prior), or a baseline: translation in both directions (bilingual-trans) or out of "
        "English (english-trans), or English written out of itself without a prior (english-ae) or with one "
        "(english-vae)",
    )
    latent: Literal["sample", "mean"] = setting(
        "sample",
        "what decoders read: samples of the latent variables, as in the paper, or their means, as in the paper's code",
    )
    injection: Injection = setting(
        "attention+logit",
        "where latent variables reach a decoder: behind its self-attention, at its logits, or at both places",
    )
    latent_dim: int = setting(1024, "components of a sentence's embedding, and of each language's variable", least=1)
    dim: int = setting(1024, "components of the states of the transformers", least=1)
    ffn_dim: int = setting(1024, "units of the feed-forward networks of the transformers", least=1)
    heads: int = setting(8, "heads of each attention of the transformers", least=1)
    encoder_layers: int = setting(5, "layers of the encoders", least=1)
    decoder_layers: int = setting(1, "layers of the decoders", least=1)
    dropout: float = setting(0.3, "probability that a component is dropped in training", least=0, below=1)
    max_length: int = setting(512, "most pieces of a sentence that are read, with the one that marks its end", least=2)
    label_smoothing: float = setting(0.1, "label smoothing of the losses of translation", least=0, below=1)
    translation_weight: float = setting(
        1.0, "weight of the losses of translation beside those of the bound (ELBO)", least=0
    )
    anneal_updates: int = setting(
        65536,
        "updates in which the weight of the divergence from the prior (KL) grows from 0 to 1; 0: it is 1 from the "
        "start",
        least=0,
    )
    candidates: int = setting(
        0,
        "ids, drawn anew for each batch, that stand in the softmax for the part of the vocabulary that is not in the "
        "batch; 0: the softmax is over the whole vocabulary",
        least=0,
    )
    learning_rate: float = setting(5e-4, "learning rate of Adam; with a schedule, its largest value", above=0)
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "inverse_sqrt",
        "what the learning rate does after its warm-up: it stays (constant), falls to 0 at the last update (linear, "
        "cosine), or falls as 1 / the square root of the number of the update (inverse_sqrt)",
    )
    warmup_updates: int = setting(4000, "updates, at the beginning, in which the learning rate grows from 0", least=0)
    weight_decay: float = setting(0.0, "decoupled weight decay (0.0001 in the paper's code)", least=0)
    clip_norm: float = setting(0.0, "largest norm of a gradient (25 in the paper's code); 0: no limit", least=0)
    epochs: float = setting(20.0, "passes over the pairs; fractions are allowed", above=0)
    batch_tokens: int = setting(
        25000,
        "largest size of a batch: the number of its sentences times the pieces of the longest one, on the longer side",
        least=1,
    )
    accumulate: int = setting(1, "batches, of different lengths, whose gradients together make one update", least=1)
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto",
        "type of the numbers in which matrices are multiplied; auto: bfloat16 on a GPU that has it, float32 elsewhere",
    )
    init: str = setting(
        "",
        "an averaging model of `dim` components; pieces that are also in its vocabulary begin with its rows in the "
        "encoder of the meaning",
        metavar="MODEL",
    )
    seed: int = setting(0, "seed of all random numbers", least=0, below=1 << 32)
    held_out: int = setting(
        500,
        "pairs that are left out of training, at most a twentieth of all; each evaluation measures their loss, and the "
        "checkpoint with the lowest is the model that is saved; 0: none, and the last one is saved",
        least=0,
    )
    evaluate_steps: int = setting(
        0, "updates between evaluations on the development pairs; 0: one at the end of each epoch", least=0
    )
    device: str = setting("auto", "torch device, such as cpu or cuda; auto: a GPU where there is one")

    def __post_init__(self) -> None:
        """Check what concerns several settings.

        Raises:
            SettingsError: Heads that do not divide the states, or a dimension that the positions cannot have.
        """
        if self.dim % self.heads:
            raise SettingsError(f"dim is {self.dim} and heads {self.heads}; dim must be a multiple of heads")
        if self.dim % 2:
            raise SettingsError(f"dim is {self.dim}; sines and cosines of positions need an even number")

    @property
    def extent(self) -> str:
        """How long a run is, in words."""
        return f"{self.epochs:g} epochs"

    @property
    def tokens(self) -> Tokens:
        """What the encoders read."""
        return "sentencepiece"
