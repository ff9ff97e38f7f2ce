"""What a mining run is asked to do."""

from __future__ import annotations

from st_paragram.bitext_mining.candidates import Candidates
from st_paragram.bitext_mining.margin import DEFAULT_K, DEFAULT_MARGIN, Margin
from st_paragram.search.settings import QUERY_BLOCK, SearchSettings
from st_paragram.settings import setting, settings

MARGIN_HELP = (
    "score: the cosine divided by the background (ratio), minus the background (distance), or alone (absolute)"
)


@settings
class MarginSettings(SearchSettings):
    """How a pair's cosine is set against its background, and how the neighbours that make it are searched for."""

    k: int = setting(
        DEFAULT_K, "neighbours of each sentence, which also make the background of a margin", least=1, option="-k"
    )
    margin: Margin = setting(DEFAULT_MARGIN, MARGIN_HELP)


@settings
class MiningSettings(MarginSettings):
    """How sentences that translate each other are looked for."""

    candidates: Candidates = setting(
        Candidates.MAX,
        "pairs put forward: max takes each sentence once, best pairs first; the command takes all by default where it "
        "looks for paraphrases",
    )
    threshold: float | None = setting(None, "least score of a pair")
    paraphrase: bool = setting(False, "look within one text")
    shard_rows: int = setting(
        1 << 15, f"sentences that one task embeds, or searches for; rounded up to a multiple of {QUERY_BLOCK}", least=1
    )
    with_ids: bool = setting(
        False, "lines are `id TAB sentence` (as in BUCC); ids come out in place of sentences", option="--ids"
    )

    @property
    def rows(self) -> int:
        """Rows of a shard."""
        return -(-self.shard_rows // QUERY_BLOCK) * QUERY_BLOCK
