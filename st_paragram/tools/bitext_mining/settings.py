"""What a mining run is asked to do."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, DEFAULT_MARGIN, Margin
from st_paragram.tools.search.settings import QUERY_BLOCK, SearchSettings

MARGIN_HELP = (
    "score of a pair: cosine divided by the background (ratio), cosine minus the background (distance), or "
    "the cosine alone (absolute)"
)


@settings
class MarginSettings(SearchSettings):
    """How a pair's cosine is set against its background, and how the neighbors that make it are searched for."""

    k: int = setting(
        DEFAULT_K,
        "neighbors searched per sentence, which also form the background of a margin",
        ge=1,
        option="-k",
    )
    margin: Margin = setting(DEFAULT_MARGIN, MARGIN_HELP)


@settings
class MiningSettings(MarginSettings):
    """How sentences that translate each other are looked for.

    Example:
        >>> from st_paragram import MiningSettings
        >>> MiningSettings(margin="ratio", threshold=1.06).k
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
    shard_rows: int = setting(
        1 << 15, f"sentences that one task embeds, or searches for; rounded up to a multiple of {QUERY_BLOCK}", ge=1
    )
    with_ids: bool = setting(
        False, "lines are `id TAB sentence`, as in BUCC, and the output has ids instead of sentences", option="--ids"
    )

    @property
    def rows(self) -> int:
        """Rows of a shard."""
        return -(-self.shard_rows // QUERY_BLOCK) * QUERY_BLOCK
