"""The steps of mining translations on many machines, with datatrove.

The recipe `mine_many_machines.py` shows their order.
"""

from st_paragram.tools.distributed.distinct import DealTexts, DistinctTexts
from st_paragram.tools.distributed.join import MatchPairs, ScorePairs, WritePairs
from st_paragram.tools.distributed.mining import make_mining_folder
from st_paragram.tools.distributed.search import (
    ChooseEffort,
    IndexVectors,
    SearchVectors,
    TrainIndex,
)

__all__ = [
    "ChooseEffort",
    "DealTexts",
    "DistinctTexts",
    "IndexVectors",
    "MatchPairs",
    "ScorePairs",
    "SearchVectors",
    "TrainIndex",
    "WritePairs",
    "make_mining_folder",
]
