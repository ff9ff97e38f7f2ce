"""The public losses for trainers of sentence-transformers, under a name of their kind.

Example:
    >>> from st_paragram.losses import MarginHardNegativeLoss
"""

from st_paragram import DualEncoderRankingLoss, MarginHardNegativeLoss

__all__ = ["DualEncoderRankingLoss", "MarginHardNegativeLoss"]
