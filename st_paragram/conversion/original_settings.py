"""What the arguments of an original training say about how texts become rows, and what a user may say instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from st_paragram.conversion.original_checkpoint import OriginalCheckpoint
from st_paragram.core.tokenizers.sentencepiece import Segmentation
from st_paragram.errors import ModelDirectoryError, short

#: The language whose rules the original evaluation gives to Moses, whatever the text's language.
MOSES_LANGUAGE = "en"


@dataclass(frozen=True)
class ImportSettings:
    """How an imported model reads texts; None: as the checkpoint's arguments say.

    Attributes:
        exact: keep the rows of strings that are not pieces, in a model that only st_paragram reads.
        lower_case: whether texts are lower-cased.
        moses: the language by whose rules Moses tokenizes texts before all else; "none": it does not.
        segmentation: word segmentation of Chinese (the original code does it before training and scoring).

    Example:
        >>> from st_paragram import ImportSettings
        >>> ImportSettings(lower_case=True, moses="en").exact
        False
    """

    exact: bool = False
    lower_case: bool | None = None
    moses: str | None = None
    segmentation: Segmentation | str = Segmentation.NONE


@dataclass(frozen=True)
class Reading:
    """How texts become tokens.

    Attributes:
        lower_case: whether texts are lower-cased.
        moses: language of Moses tokenization, or None.
        segmentation: word segmentation of Chinese.
        trigrams: whether tokens are windows of three characters.
        sentencepiece: the bytes of the model that makes pieces, or None.
        dropout: of the embeddings, in training.
    """

    lower_case: bool
    moses: str | None
    segmentation: Segmentation
    trigrams: bool
    sentencepiece: bytes | None
    dropout: float


def reading(checkpoint: OriginalCheckpoint, settings: ImportSettings, sentencepiece: bytes | None) -> Reading:
    """How an imported model reads texts.

    Args:
        checkpoint: its arguments are what holds where `settings` say nothing.
        settings: of the import.
        sentencepiece: the bytes of a sentencepiece model, for a checkpoint of pieces.

    Raises:
        ModelDirectoryError: the checkpoint is of a model that does not average what it knows in a single table, or the
            sentencepiece model is missing or there is no use for one.
        ValueError: there is no such segmentation.
    """
    found = checkpoint.arguments
    _refuse_others(checkpoint, found)
    trigrams = bool(found.get("ngrams"))
    named = found.get("sp_model")
    if trigrams and sentencepiece is not None:
        raise ModelDirectoryError(f"{checkpoint.path}: a model of character trigrams; leave the sentencepiece file out")
    if named and not trigrams and sentencepiece is None:
        raise ModelDirectoryError(
            f"{checkpoint.path}: a model of sentencepiece pieces (its args name {short(named)}); give that file, too"
        )
    moses = settings.moses or (MOSES_LANGUAGE if found.get("tokenize") else None)
    dropout = found.get("dropout")
    return Reading(
        bool(found.get("lower_case", True)) if settings.lower_case is None else settings.lower_case,
        None if moses == "none" else moses,
        Segmentation(settings.segmentation),
        trigrams,
        sentencepiece,
        dropout if isinstance(dropout, float) and 0 <= dropout < 1 else 0.0,
    )


def _refuse_others(checkpoint: OriginalCheckpoint, found: Mapping[str, Any]) -> None:
    problems = {
        "pool": (found.get("pool", "mean") != "mean", "only the mean of embeddings can be imported"),
        "zero_unk": (not found.get("zero_unk", 1), "only models that drop unknown tokens can be imported"),
        "share_vocab": (not found.get("share_vocab", 1), "a model with a table for each language cannot be imported"),
        "ngrams": (found.get("ngrams") not in (None, 0, 3), "only windows of 3 characters can be imported"),
    }
    for name, (present, reason) in problems.items():
        if present:
            raise ModelDirectoryError(f"{checkpoint.path}: its args have {name}={short(found.get(name))}; {reason}")
