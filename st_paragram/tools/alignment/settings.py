"""How documents are aligned."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.settings import MARGIN_HELP

#: What a block must score to be taken if nothing else is said. Ratio and distance: more than its background.
SKIP = {Margin.RATIO: 1.0, Margin.DISTANCE: 0.0, Margin.ABSOLUTE: 0.3}


@settings
class AlignmentSettings:
    """How two documents are aligned."""

    margin: Margin = setting(Margin.RATIO, MARGIN_HELP)
    k: int = setting(
        DEFAULT_K,
        "neighbors that form the background of a margin; fewer in a smaller document",
        ge=1,
        option="--neighbours",
    )
    skip: float | None = setting(
        None,
        "score below which sentences are skipped; default: 1 (ratio), 0 (distance) or 0.3 (absolute)",
        option="--skip-below",
        metavar="SCORE",
    )
    with_skipped: bool = setting(
        False, "also write the skipped sentences, each with an empty other side and a score of 0", option="--all"
    )

    @property
    def least(self) -> float:
        """`skip`, or its default for this margin."""
        return SKIP[self.margin] if self.skip is None else self.skip
