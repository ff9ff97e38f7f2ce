"""Settings of bitext mining."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, DEFAULT_MARGIN, Margin
from st_paragram.tools.neighbors.settings import SearchSettings

MARGIN_HELP = (
    "score of a pair: cosine divided by the background (ratio), cosine minus the background"
    " (distance), or the cosine alone (absolute)"
)
NEIGHBORS_HELP = "neighbors searched per sentence, also used as the background of a margin"


@settings
class MarginSettings(SearchSettings):
    """Settings of margin scores and of the neighbor search for their backgrounds."""

    neighbors: int = setting(DEFAULT_K, NEIGHBORS_HELP, ge=1)
    margin: Margin = setting(DEFAULT_MARGIN, MARGIN_HELP)


@settings
class MiningSettings(MarginSettings):
    """Settings of bitext and paraphrase mining.

    Examples:
        >>> from st_paragram import MiningSettings
        >>> MiningSettings(margin="ratio", threshold=1.06).neighbors
        4
    """

    candidates: Candidates = setting(
        Candidates.MAX,
        "candidate pairs: the best neighbor of each source sentence (forward) or target sentence"
        " (backward), pairs in both sets (intersection), pairs in either set, best first, each"
        " sentence once (max), or every pair of neighbors (all, the command's default for"
        " paraphrases)",
    )
    threshold: float | None = setting(None, "minimum score of a pair")
    paraphrase: bool = setting(False, "find paraphrases within one text")
    groups: bool = setting(
        False,
        "for paraphrases: write groups instead of pairs, each with the sentences whose cosine with"
        " a central sentence reaches the threshold",
    )
    min_size: int = setting(2, "with groups: minimum sentences of a group", ge=2)
    with_ids: bool = setting(
        False,
        "lines are `id TAB sentence`, as in BUCC, and the output has ids instead of sentences",
        option="--ids",
    )
