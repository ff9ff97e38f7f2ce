"""What a mining run is asked to do."""

from __future__ import annotations

from st_paragram.bitext_mining.candidates import Candidates
from st_paragram.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.search.settings import QUERY_BLOCK, SearchSettings
from st_paragram.settings import setting, settings


@settings
class MarginSettings(SearchSettings):
    """How a pair's cosine is set against its background, and how the neighbours that make it are searched for."""

    k: int = setting(
        DEFAULT_K, "neighbours of each sentence, which also make the background of a margin", least=1, option="-k"
    )
    margin: Margin = setting(Margin.RATIO, "score: the cosine divided by its background, less it, or alone")


@settings
class MiningSettings(MarginSettings):
    """How sentences that translate each other are looked for."""

    candidates: Candidates = setting(
        Candidates.MAX, "pairs put forward; max takes each sentence once, best pairs first"
    )
    threshold: float | None = setting(None, "least score of a pair")
    paraphrase: bool = setting(False, "look within one text")
    shard_rows: int = setting(
        1 << 15, f"sentences that one task embeds, or searches for; rounded up to a multiple of {QUERY_BLOCK}", least=1
    )
    with_ids: bool = setting(False, "lines are `id TAB sentence` (BUCC); ids come out", option="--ids")

    @property
    def rows(self) -> int:
        """Rows of a shard."""
        return -(-self.shard_rows // QUERY_BLOCK) * QUERY_BLOCK
