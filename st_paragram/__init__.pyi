from st_paragram.conversion.original_import import ImportSettings as ImportSettings
from st_paragram.conversion.original_import import import_checkpoint as import_checkpoint
from st_paragram.core.encoding.encoder import Encoder as Encoder
from st_paragram.core.pair_store import PairStore as PairStore
from st_paragram.core.pair_store import PairStoreWriter as PairStoreWriter
from st_paragram.core.sample import sample_pairs as sample_pairs
from st_paragram.core.text.parallel import parse_source as parse_source
from st_paragram.core.tokenizers.sentencepiece import (
    SentencePieceTokenizer as SentencePieceTokenizer,
)
from st_paragram.families.bgt.sentence_transformers_encoder import (
    GenerativeEncoder as GenerativeEncoder,
)
from st_paragram.families.loading import load as load
from st_paragram.families.muse.losses import DualEncoderRankingLoss as DualEncoderRankingLoss
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder as DualEncoder
from st_paragram.families.muse.sentence_transformers_encoder import (
    EncoderWithTowers as EncoderWithTowers,
)
from st_paragram.families.muse.settings import MuseData as MuseData
from st_paragram.families.muse.side_by_side import SideBySide as SideBySide
from st_paragram.families.muse.use_encoder import UseEncoder as UseEncoder
from st_paragram.families.psp.margin_hard_negative import (
    MarginHardNegativeLoss as MarginHardNegativeLoss,
)
from st_paragram.families.psp.mega_batch_trainer import MegaBatchTrainer as MegaBatchTrainer
from st_paragram.families.psp.mega_batch_trainer import (
    MegaBatchTrainingArguments as MegaBatchTrainingArguments,
)
from st_paragram.families.psp.settings import TrainingSettings as TrainingSettings
from st_paragram.hub import push as push
from st_paragram.learning.models.load_save import save as save
from st_paragram.learning.models.sentence_transformers_encoder import (
    ParagramEncoder as ParagramEncoder,
)
from st_paragram.learning.models.sentence_transformers_encoder import pipeline as pipeline
from st_paragram.learning.modules.mean_pool import MeanPool as MeanPool
from st_paragram.learning.modules.token_embedding import (
    SentencePieceEmbedding as SentencePieceEmbedding,
)
from st_paragram.learning.modules.token_embedding import TokenEmbedding as TokenEmbedding
from st_paragram.runs.development import Development as Development
from st_paragram.runs.development import development_pairs as development_pairs
from st_paragram.runs.development import hold_out as hold_out
from st_paragram.runs.run import TrainingRun as TrainingRun
from st_paragram.runs.run import run_training as run_training
from st_paragram.tools.alignment.align import align as align
from st_paragram.tools.alignment.settings import AlignmentSettings as AlignmentSettings
from st_paragram.tools.bitext_mining.miner import mine as mine
from st_paragram.tools.bitext_mining.settings import MiningSettings as MiningSettings
from st_paragram.tools.cleaning.config import default_cleaning as default_cleaning
from st_paragram.tools.comparison import compare as compare
from st_paragram.tools.distributed.clean import CleanPairs as CleanPairs
from st_paragram.tools.distributed.embed import EmbedTexts as EmbedTexts
from st_paragram.tools.embed_files import embed_files as embed_files
from st_paragram.tools.embed_files import read_embeddings as read_embeddings
from st_paragram.tools.evaluation.mteb_model import model_meta as model_meta
from st_paragram.tools.preparation.prepare import prepare as prepare
from st_paragram.tools.preparation.settings import PrepareSettings as PrepareSettings
from st_paragram.tools.score_files import score_file as score_file
from st_paragram.tools.search.index import SearchIndex as SearchIndex

__version__: str
