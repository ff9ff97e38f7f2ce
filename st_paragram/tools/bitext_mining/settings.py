"""What a mining run is asked to do."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, DEFAULT_MARGIN, Margin
from st_paragram.tools.neighbors.settings import SearchSettings

MARGIN_HELP = (
    "score of a pair: cosine divided by the background (ratio), cosine minus the background (distance), or "
    "the cosine alone (absolute)"
)
NEIGHBORS_HELP = "neighbors searched per sentence, which also form the background of a margin"


@settings
class MarginSettings(SearchSettings):
    """How a pair's cosine is set against its background, and how the neighbors that make it are searched for."""

    neighbors: int = setting(DEFAULT_K, NEIGHBORS_HELP, ge=1)
    margin: Margin = setting(DEFAULT_MARGIN, MARGIN_HELP)


@settings
class MiningSettings(MarginSettings):
    """How sentences that translate each other are looked for.

    Example:
        >>> from st_paragram import MiningSettings
        >>> MiningSettings(margin="ratio", threshold=1.06).neighbors
        4
    """

    candidates: Candidates = setting(
        Candidates.MAX,
        "candidate pairs: the best neighbor of each source sentence (forward) or target sentence "
        "(backward), pairs that are both (intersection), either, best pairs first, with each sentence once "
        "(max), or every pair of neighbors (all, the command's default for paraphrases)",
    )
    threshold: float | None = setting(None, "minimum score of a pair")
    paraphrase: bool = setting(False, "find paraphrases within one text")
    with_ids: bool = setting(
        False, "lines are `id TAB sentence`, as in BUCC, and the output has ids instead of sentences", option="--ids"
    )
