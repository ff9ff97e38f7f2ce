"""The files of decoders and of what else belongs to no pipeline of a generative model: checked, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.directory import configured, file_of
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import ModelDirectoryError, refused, short
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, DecoderShape
from st_paragram.families.bgt.settings import SIDES, Side
from st_paragram.learning.models import stock
from st_paragram.learning.modules.compact_embedding import is_finite
from st_paragram.learning.modules.transformer_encoder import special_ids

#: Where their weights are.
DECODERS = "decoders/model.safetensors"


def own_tensors(generator: BilingualGenerator) -> dict[str, torch.Tensor]:
    """What belongs to no pipeline."""
    state = generator.state_dict()
    return {name: tensor.cpu().contiguous() for name, tensor in state.items() if ".pipeline." not in name}


def checked(folder: Path, values: dict[str, Any]) -> dict[str, Any]:
    """What `st_paragram.json` says, with the decoders' sizes as they must be."""
    with configured(folder):
        first, second = values["languages"]
        if not (isinstance(first, str) and isinstance(second, str)):
            raise ValueError(f"languages are {short(values['languages'])}")
        for language in (first, second):
            if not language.replace("_", "").replace("-", "").isalnum():
                raise ValueError(f"language is {short(language)}")
        shape = pydantic.TypeAdapter(DecoderShape).validate_python(values["decoders"])
        transformer = shape.transformer
        if transformer.heads < 1 or transformer.dim % transformer.heads or not 0 <= transformer.dropout < 1:
            raise ValueError(f"heads are {transformer.heads}, and dropout is {transformer.dropout}")
        sides: list[Side] = [side for side in SIDES if side in values["language_encoders"]]
    return {"languages": (first, second), "decoders": shape, "sides": sides}


def read_generator(
    folder: Path,
    values: dict[str, Any],
    model: SentenceTransformer,
    tokenizer: Tokenizer,
) -> BilingualGenerator:
    """Read encoders and decoders.

    Args:
        folder: Model directory.
        values: Entries of its `st_paragram.json`.
        model: Its pipeline, the semantic encoder.
        tokenizer: The tokenizer of all parts.

    Raises:
        ModelDirectoryError: a file is missing or damaged.
    """
    sizes, path = checked(folder, values), file_of(folder, DECODERS)
    encoders = {
        side: stock.read(folder / f"language-{sizes['languages'][SIDES.index(side)]}", {}, str(model.device), None)
        for side in sizes["sides"]
    }
    with refused(ModelDirectoryError, path, "not the decoders of this model", "save it again", SafetensorError):
        _check_sizes(path, sizes["decoders"])
        special, vocabulary = special_ids(tokenizer), len(tokenizer)
        generator = BilingualGenerator(model, encoders, vocabulary, special, sizes["decoders"])
        _fill(generator, load_file(path))
    return generator


def _check_sizes(path: Path, shape: DecoderShape) -> None:
    """Compare sizes with the weights, before anything of such a size is made."""
    with safe_open(path, "pt") as file:
        extents = [max(file.get_slice(name).get_shape(), default=1) for name in file.keys()]  # noqa: SIM118 - no mapping
    transformer = shape.transformer
    sizes = (transformer.dim, transformer.ffn_dim, transformer.max_length, shape.latent_dim)
    if not 0 < transformer.layers <= len(extents) or max(sizes) > max(extents, default=0) or min(sizes) < 1:
        raise ValueError("sizes that the weights do not have")


def _fill(generator: BilingualGenerator, saved: dict[str, torch.Tensor]) -> None:
    found = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    if found != {name: tuple(tensor.shape) for name, tensor in own_tensors(generator).items()}:
        raise ValueError("other tensors than this model has")
    if not all(tensor.dtype == torch.float32 and is_finite(tensor) for tensor in saved.values()):
        raise ValueError("other numbers than finite ones of float32")
    generator.load_state_dict(saved, strict=False)
