"""Where model directories that earlier versions wrote look for the modules of their pipelines."""

import sys

from st_paragram.families.muse import convolution_encoder
from st_paragram.families.sp import bilstm
from st_paragram.learning.modules import mean_pool, sentencepiece_embedding, token_embedding

for _module in (mean_pool, sentencepiece_embedding, token_embedding, bilstm, convolution_encoder):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module
