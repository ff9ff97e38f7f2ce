"""The parts of the generative model, its ablations and its baselines (EMNLP 2020). Nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: The sides of a pair; English is side a.
Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")

Objective = Literal["bgt", "no-langvars", "no-prior", "bilingual-trans", "english-trans", "english-ae", "english-vae"]


@dataclass(frozen=True)
class ObjectiveParts:
    """The parts of an objective.

    Attributes:
        prior: Latent variables are random, and their divergence from N(0, I) is a term.
        languages: Each language has a separate latent variable.
        generators: Sides that are written out of the latent variables of the pair.
        translators: Sides that are written out of the other side's meaning.
        weight: Of translations.
    """

    prior: bool
    languages: bool
    generators: tuple[Side, ...]
    translators: tuple[Side, ...]
    weight: float = 1.0


#: Where a shared encoder only translates, both directions have half the weight, as in the authors' code.
OBJECTIVES: dict[Objective, ObjectiveParts] = {
    "bgt": ObjectiveParts(True, True, SIDES, SIDES),
    "no-langvars": ObjectiveParts(True, False, (), SIDES, 0.5),
    "no-prior": ObjectiveParts(False, True, SIDES, SIDES),
    "bilingual-trans": ObjectiveParts(False, False, (), SIDES, 0.5),
    "english-trans": ObjectiveParts(False, False, (), ("b",)),
    "english-ae": ObjectiveParts(False, False, ("a",), ()),
    "english-vae": ObjectiveParts(True, False, ("a",), ()),
}


def other(side: Side) -> Side:
    """The other side of a pair."""
    return "b" if side == "a" else "a"
