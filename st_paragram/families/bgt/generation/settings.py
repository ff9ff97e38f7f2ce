"""What can be generated, and the settings of it. Nothing here needs torch."""

from __future__ import annotations

from typing import Literal

from st_paragram.core.settings import setting, settings

Task = Literal["reconstruct", "translate", "transfer"]
TASKS: tuple[Task, ...] = ("reconstruct", "translate", "transfer")

#: What to do about a model that cannot generate.
NEEDED = "generate needs a directory made by `st-paragram train bgt`"


@settings
class GenerationSettings:
    """How sentences are written; EMNLP 2020 has a beam of 5 and at most 200 pieces."""

    beam: int = setting(5, "beam width: hypotheses kept at each step; 1: always the best next piece", ge=1)
    max_length: int = setting(200, "maximum pieces per generated sentence, limited by the model's positions", ge=1)
    length_penalty: float = setting(
        1.0,
        "length penalty: a sentence's log probability is divided by its length to this power; 0 favors short sentences",
        ge=0,
    )
    batch_size: int = setting(64, "sentences generated together", ge=1)
