"""The settings of a search for a mixture of texts."""

from __future__ import annotations

from typing import Any, Literal

from st_paragram.core.settings import setting, settings


@settings
class MixSettings:
    """How texts are compared."""

    method: Literal["leave-out", "add"] = setting(
        "leave-out",
        "train on all sources and on all but one, for each (leave-out), or begin with nothing and add the source that "
        "raises the score most, as long as one does (add)",
    )
    seeds: int = setting(3, "trainings of each mixture, which differ in their random numbers", least=2, most=100)
    sample: int = setting(20_000, "pairs of each source, drawn at random, that are used", least=2)
    held_out: int = setting(
        500,
        "pairs of each language that are kept from the sources to score models, at most a tenth of a source; for "
        "languages without --dev-bitext",
        least=0,
        most=10_000,
    )
    lower_weight: float = setting(
        0.3, "weight that is tried for a source that hurts, before it is left out", above=0, below=1
    )
    dim: int = setting(300, "components of an embedding", least=1)
    epochs: float = setting(1.0, "passes over all pairs; trainings on fewer pairs take as many steps", above=0)
    vocab_size: int | None = setting(
        None, "pieces of the one vocabulary; if it is not given: as `st-paragram prepare` chooses", least=8
    )
    vocab_sample: int = setting(200_000, "pairs on which the vocabulary is trained, as many of each language", least=1)
    vocab_threads: int = setting(2, "threads that train the vocabulary", least=1)
    device: str = setting("cpu", "torch device of the trainings")
    seed: int = setting(0, "seed of samples and of the first trainings", least=0, below=1 << 31)

    def training(self, seed: int) -> dict[str, Any]:
        """The settings of a training that differ from those of the configuration `small`."""
        return {"dim": self.dim, "epochs": self.epochs, "device": self.device, "seed": self.seed + seed}
