"""What a mining is asked to do, checked when it is made."""

from __future__ import annotations

import re
from dataclasses import dataclass

from st_paragram.bitext_mining.margin import DEFAULT_K, Candidates, Margin
from st_paragram.errors import SettingsError
from st_paragram.search.vectors import Precision

AUTO, FLAT = "auto", "Flat"
QUERY_BLOCK = 1024  # queries searched together, always the same ones: rounding must not depend on shards
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LEAST_MEMORY = 256 << 20


@dataclass(frozen=True)
class MiningSettings:
    """How sentences that translate each other are looked for.

    Attributes:
        k: Neighbours looked for on the other side, which also make the background of a margin (ACL 2019: 4).
        margin: How a cosine is set against its background.
        candidates: Which pairs are put forward; MAX takes each sentence once, best pairs first.
        threshold: Least score of a pair; None for no limit.
        paraphrase: Look within one text.
        index: "Flat" compares everything with everything, exactly. Others are faiss factory strings, such as
            "IVF2048,SQfp16" or "HNSW32", which lose some neighbours. "auto": exact while that takes minutes.
        recall: Share of the sentences of a sample whose nearest neighbour an inexact index must find before it is used.
        precision: Of the embeddings on disk.
        memory: Bytes that vectors and indexes may take in memory at a time; libraries take some 500 MB beside.
        shard_rows: Sentences that one task embeds, or searches for; rounded up to a multiple of `QUERY_BLOCK`.
        with_ids: Lines are `id TAB sentence`, and ids come out.
        most_repeats: Leave out sentences that occur more often; None for all.
        seed: Of samples.
    """

    k: int = DEFAULT_K
    margin: Margin = Margin.RATIO
    candidates: Candidates = Candidates.MAX
    threshold: float | None = None
    paraphrase: bool = False
    index: str = AUTO
    recall: float = 0.9
    precision: Precision = Precision.FLOAT16
    memory: int = 4 << 30
    shard_rows: int = 1 << 15
    with_ids: bool = False
    most_repeats: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every setting.

        Raises:
            SettingsError: One is out of its range; the message names it.
        """
        for name in ("k", "shard_rows", "most_repeats"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"{name} is {value}; it must be at least 1")
        if not 0 < self.recall <= 1:
            raise SettingsError(f"recall is {self.recall}; it is a share, above 0 and at most 1")
        if self.memory < _LEAST_MEMORY:
            raise SettingsError(f"memory is {self.memory:,} bytes; give at least {_LEAST_MEMORY:,}, as in 256M")
        if self.index != AUTO and not re.fullmatch(r"[A-Za-z][\w,()]*", self.index):
            raise SettingsError(
                f"index is {self.index!r}; give auto, Flat or a faiss factory string like IVF1024,SQfp16"
            )

    @property
    def rows(self) -> int:
        """Rows of a shard."""
        return -(-self.shard_rows // QUERY_BLOCK) * QUERY_BLOCK


def parse_memory(text: str) -> int:
    """Bytes of a size such as 4G or 512M.

    Raises:
        SettingsError: It is no size.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", text.strip().upper())
    if match is None:
        raise SettingsError(f"memory {text!r}: give a size like 4G or 512M")
    return int(float(match[1]) * _UNITS[match[2]])
