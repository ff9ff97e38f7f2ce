"""Settings of sentence alignment."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, DEFAULT_MARGIN, Margin
from st_paragram.tools.bitext_mining.settings import MARGIN_HELP, NEIGHBORS_HELP

#: Default minimum score of a block. For ratio and distance: its background.
SKIP = {Margin.RATIO: 1.0, Margin.DISTANCE: 0.0, Margin.ABSOLUTE: 0.3}


@settings
class AlignmentSettings:
    """Settings of sentence alignment.

    A document with fewer sentences than `neighbors` is used whole as background.
    """

    neighbors: int = setting(DEFAULT_K, NEIGHBORS_HELP, ge=1)
    margin: Margin = setting(DEFAULT_MARGIN, MARGIN_HELP)
    skip: float | None = setting(
        None,
        "score below which sentences are skipped; default: 1 (ratio), 0 (distance) or 0.3"
        " (absolute)",
        option="--skip-below",
        metavar="SCORE",
    )
    with_skipped: bool = setting(
        False,
        "also write skipped sentences, with an empty other side and a score of 0",
        option="--all",
    )

    @property
    def least(self) -> float:
        """`skip`, or its default for this margin."""
        return SKIP[self.margin] if self.skip is None else self.skip
