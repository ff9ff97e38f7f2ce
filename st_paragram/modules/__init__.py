"""The modules of `SentenceTransformer(modules=[...])` pipelines."""

from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.side_by_side import SideBySide
from st_paragram.families.muse.use_encoder import UseEncoder
from st_paragram.families.sp.bilstm import BiLSTM
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.learning.modules.token_embedding import TokenEmbedding

__all__ = [
    "BiLSTM",
    "ConvolutionEncoder",
    "MeanPool",
    "SentencePieceEmbedding",
    "SideBySide",
    "TokenEmbedding",
    "UseEncoder",
]
