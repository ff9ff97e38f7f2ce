"""The public modules for pipelines of sentence-transformers, under a name of their kind.

Example:
    >>> from st_paragram.modules import MeanPool, SentencePieceEmbedding
"""

from st_paragram import MeanPool, SentencePieceEmbedding, SideBySide, TokenEmbedding, UseEncoder

__all__ = ["MeanPool", "SentencePieceEmbedding", "SideBySide", "TokenEmbedding", "UseEncoder"]
