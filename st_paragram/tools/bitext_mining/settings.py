"""What a mining run is asked to do."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, DEFAULT_MARGIN, Margin
from st_paragram.tools.search.settings import QUERY_BLOCK, SearchSettings

MARGIN_HELP = (
    "what the score of a pair is: its cosine divided by the background (ratio), its cosine minus the background "
    "(distance), or its cosine alone (absolute)"
)


@settings
class MarginSettings(SearchSettings):
    """How a pair's cosine is set against its background, and how the neighbours that make it are searched for."""

    k: int = setting(
        DEFAULT_K,
        "neighbours that are searched for each sentence; they also make the background of a margin",
        least=1,
        option="-k",
    )
    margin: Margin = setting(DEFAULT_MARGIN, MARGIN_HELP)


@settings
class MiningSettings(MarginSettings):
    """How sentences that translate each other are looked for."""

    candidates: Candidates = setting(
        Candidates.MAX,
        "which pairs are considered: the best neighbour of each source sentence (forward), that of each target "
        "sentence (backward), the pairs that are both (intersection), either of them with each sentence once and the "
        "best pairs first (max), or every pair of neighbours (all, the command's default for paraphrases)",
    )
    threshold: float | None = setting(None, "lowest score of a pair that is kept")
    paraphrase: bool = setting(False, "look for paraphrases within one text")
    shard_rows: int = setting(
        1 << 15, f"sentences that one task embeds, or searches for; rounded up to a multiple of {QUERY_BLOCK}", least=1
    )
    with_ids: bool = setting(
        False, "lines are `id TAB sentence`, as in BUCC, and the output has ids in place of sentences", option="--ids"
    )

    @property
    def rows(self) -> int:
        """Rows of a shard."""
        return -(-self.shard_rows // QUERY_BLOCK) * QUERY_BLOCK
