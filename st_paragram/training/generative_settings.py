"""The settings of a training run of the bilingual generative transformer. Nothing here needs torch."""

from __future__ import annotations

from typing import Literal

from st_paragram.errors import SettingsError
from st_paragram.modules.generative_objective import Objective
from st_paragram.preparation.settings import Tokens
from st_paragram.settings import setting, settings

Injection = Literal["attention+logit", "attention", "logit"]


@settings
class GenerativeSettings:
    """What a training run of a generative model is made of; the defaults are the paper's (EMNLP 2020, section 4)."""

    objective: Objective = setting(
        "bgt",
        "the model (bgt), the same without latent variables of the languages (no-langvars) or without a prior "
        "(no-prior), or a baseline: translation in both directions or out of English, or English written out of itself "
        "(english-ae), with a prior (english-vae)",
    )
    latent: Literal["sample", "mean"] = setting(
        "sample",
        "what is written out of: samples of the latent variables, as in the paper, or their means, as in its code",
    )
    injection: Injection = setting(
        "attention+logit", "where latent variables reach a decoder: behind its self-attention, at its logits, or both"
    )
    latent_dim: int = setting(1024, "components of a sentence's embedding, and of each language's variable", least=1)
    dim: int = setting(1024, "components of a state of the transformers", least=1)
    ffn_dim: int = setting(1024, "units of their feed-forward networks", least=1)
    heads: int = setting(8, "heads of an attention", least=1)
    encoder_layers: int = setting(5, "layers of the encoders", least=1)
    decoder_layers: int = setting(1, "layers of the decoders", least=1)
    dropout: float = setting(0.3, "probability that a component is dropped in training", least=0, below=1)
    max_length: int = setting(512, "pieces of a sentence that are read, its end included", least=2)
    label_smoothing: float = setting(0.1, "label smoothing of translation", least=0, below=1)
    translation_weight: float = setting(1.0, "weight of the translation of meanings beside the bound", least=0)
    anneal_updates: int = setting(
        65536, "updates until the divergence from the prior has its full weight; 0: from the start", least=0
    )
    candidates: int = setting(
        0,
        "ids that stand, drawn anew for each batch, for all of the vocabulary that it does not hold; 0: the whole "
        "vocabulary, always",
        least=0,
    )
    learning_rate: float = setting(5e-4, "learning rate of Adam; with a schedule, the largest", above=0)
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = setting(
        "inverse_sqrt",
        "the learning rate after its warm-up: constant, down to 0 with the last update (linear, cosine), or falling "
        "with the root of the update's number (inverse_sqrt)",
    )
    warmup_updates: int = setting(4000, "updates in which the learning rate first grows from 0", least=0)
    weight_decay: float = setting(0.0, "decoupled weight decay; the paper's code has 0.0001", least=0)
    clip_norm: float = setting(0.0, "largest norm of a gradient; 0: no limit; the paper's code has 25", least=0)
    epochs: float = setting(20.0, "passes over the pairs; fractions are allowed", above=0)
    batch_tokens: int = setting(
        25000, "largest size of a batch: its sentences times the pieces of the longest, on the longer side", least=1
    )
    accumulate: int = setting(1, "batches, of different lengths, whose gradients make one update", least=1)
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto", "what matrices are multiplied in; auto: bfloat16 on a GPU that has it, float32 elsewhere"
    )
    init: str = setting(
        "",
        "an averaging model of `dim` components, whose rows the semantic encoder begins with where pieces are the same",
        metavar="MODEL",
    )
    seed: int = setting(0, "seed of all random numbers", least=0, below=1 << 32)
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
