"""The modules of `SentenceTransformer(modules=[...])` pipelines."""

from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.side_by_side import SideBySide
from st_paragram.families.muse.use_encoder import UseEncoder
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding, TokenEmbedding

__all__ = [
    "ConvolutionEncoder",
    "MeanPool",
    "SentencePieceEmbedding",
    "SideBySide",
    "TokenEmbedding",
    "UseEncoder",
]
