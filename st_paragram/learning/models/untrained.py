"""Models with random weights, to measure an architecture without training."""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import nn

from st_paragram import load
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.learning.modules.transformer_encoder import SpecialIds, initialise


def random_model(name: str) -> SentenceTransformer:
    """Open a model, and give it new random weights, the same in every call."""
    model = load(name)
    torch.manual_seed(0)
    embedding = averaging_embedding(model)
    if embedding is not None:
        return pipeline(token_embedding(embedding.tokenizer, embedding.embedding_dimension))
    for module in model.modules():
        if "Positional" in type(module).__name__:
            module.requires_grad_(False)  # so that `initialise` leaves it unchanged
        elif callable(reset := getattr(module, "reset_parameters", None)):
            reset()
        else:
            # norms of transformers, weights of their layers, and other parameters of a module
            for part, parameter in module.named_parameters(recurse=False):
                if parameter.ndim > 1:
                    nn.init.xavier_uniform_(parameter)
                else:
                    nn.init.constant_(parameter, 0.0 if part == "bias" else 1.0)
    for module in model.modules():
        if isinstance(module, Transformer):
            encoder: Any = module.model
            config = encoder.config
            initialise(encoder, SpecialIds(config.pad_token_id, config.eos_token_id))
    return model.eval()
