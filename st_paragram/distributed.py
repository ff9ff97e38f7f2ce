"""The steps of mining translations on many machines, with datatrove.

The recipe `mine_many_machines.py` shows their order.
"""

from st_paragram.tools.distributed.distinct import DealTexts, DistinctTexts
from st_paragram.tools.distributed.join import MatchPairs, ScorePairs, WritePairs
from st_paragram.tools.distributed.mining import make_mining_folder
from st_paragram.tools.distributed.search import IndexVectors, SearchVectors

__all__ = [
    "DealTexts",
    "DistinctTexts",
    "IndexVectors",
    "MatchPairs",
    "ScorePairs",
    "SearchVectors",
    "WritePairs",
    "make_mining_folder",
]
