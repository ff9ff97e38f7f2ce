"""The settings of a training of towers over a finished encoder. Nothing here needs torch."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings


@settings
class TowersSettings:
    """Settings of a training of towers over a finished encoder."""

    epochs: int = setting(4, "passes over the questions and responses; the best of them is kept", ge=1)
    batch_size: int = setting(512, "pairs per batch, all of one task and language", ge=16)
    learning_rate: float = setting(1e-4, "maximum learning rate of the towers; it falls to 0", gt=0)
    scale: float = setting(30.0, "factor for cosines in the softmax over a batch", gt=0)
    nli_epochs: int = setting(8, "passes over the pairs of inference; the best of them is kept", ge=1)
    nli_learning_rate: float = setting(1e-3, "maximum learning rate of the classifier; it falls to 0", gt=0)
    nli_dropout: float = setting(0.3, "dropout probability of the classifier", ge=0, lt=1)
    held_out: float = setting(0.05, "share of the rows that is held out, to choose the epoch", gt=0, lt=0.5)
    seed: int = setting(0, "seed of all random numbers", ge=0)
