"""The settings of a search for a mixture of texts."""

from __future__ import annotations

from typing import Any, Literal

from st_paragram.core.settings import setting, settings


@settings
class MixSettings:
    """How texts are compared."""

    method: Literal["leave-out", "add"] = setting(
        "leave-out",
        "leave-out: train on all sources, and without each source in turn; add: begin without sources and "
        "keep adding the source that raises the score most",
    )
    seeds: int = setting(3, "training runs per mixture, with different random seeds", ge=2, le=100)
    sample: int = setting(20_000, "pairs to use from each source, drawn at random", ge=2)
    held_out: int = setting(
        500,
        "pairs per language held out from the sources to score models, at most a tenth of a source; for "
        "languages without --dev-bitext",
        ge=0,
        le=10_000,
    )
    lower_weight: float = setting(0.3, "weight to try for a harmful source before leaving it out", gt=0, lt=1)
    dim: int = setting(300, "components of an embedding", ge=1)
    epochs: float = setting(1.0, "passes over all pairs; trainings on fewer pairs take as many steps", gt=0)
    vocab_size: int | None = setting(
        None, "pieces of the shared vocabulary; default: as in `st-paragram prepare`", ge=8
    )
    vocab_sample: int = setting(200_000, "pairs on which the vocabulary is trained, as many of each language", ge=1)
    vocab_threads: int = setting(2, "threads that train the vocabulary", ge=1)
    device: str = setting("cpu", "torch device of the trainings")
    seed: int = setting(0, "seed of samples and of the first trainings", ge=0, lt=1 << 31)

    def training(self, seed: int) -> dict[str, Any]:
        """The settings of a training that differ from those of the configuration `small`."""
        return {"dim": self.dim, "epochs": self.epochs, "device": self.device, "seed": self.seed + seed}
