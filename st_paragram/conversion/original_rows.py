"""Rows of an original checkpoint as the table of one of our tokenizers.

The original code numbers strings, not sentencepiece ids, so rows are found by what a token looks like: the piece,
lower-cased once more, between white space (see `tokenizers/original.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from st_paragram.conversion.original_checkpoint import UNKNOWN, OriginalCheckpoint
from st_paragram.conversion.original_settings import Reading
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer
from st_paragram.core.tokenizers.original import OriginalTokenizer, write_content
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.string_lists import write_strings
from st_paragram.core.tokenizers.words import Splitter, WordTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError

_LEAST_SHARE = 0.5  # of the pieces that have a row: nearly all where model and checkpoint belong together


@dataclass(frozen=True)
class ImportedRows:
    """A tokenizer and its table.

    Attributes:
        tokenizer: gives ids.
        table: float32 (len(tokenizer), D).
        rows: of the checkpoint that belong to a string, that of `UUUNKKK` left out.
        left_out: those of them that no text reaches in the imported model.
        pieces_without_row: pieces that are dropped on encoding, as the original code drops them.
    """

    tokenizer: Tokenizer
    table: Tensor
    rows: int
    left_out: int
    pieces_without_row: int = 0


def exact_rows(checkpoint: OriginalCheckpoint, reading: Reading) -> ImportedRows:
    """All rows, in a model that does what the original code does.

    Raises:
        ModelDirectoryError: the sentencepiece model is not that of the checkpoint.
        SettingsError: the vocabulary cannot be kept: it has an empty string, or one that is not text.
    """
    missing = 0
    if reading.sentencepiece is not None:
        whole = SentencePieceTokenizer(reading.sentencepiece, reading.lower_case)
        missing = len(_pieces_to_rows(checkpoint, whole, exact=True)[1])
    strings = _strings(checkpoint)
    content = write_content(strings, reading.sentencepiece)
    tokenizer = OriginalTokenizer(content, reading.lower_case, reading.trigrams, reading.moses, reading.segmentation)
    return ImportedRows(tokenizer, _table(checkpoint, strings), len(strings), 0, missing)


def shared_rows(checkpoint: OriginalCheckpoint, reading: Reading) -> ImportedRows:
    """The rows that one of our other tokenizers reaches, so that the model is one like those trained here.

    Raises:
        ModelDirectoryError: the sentencepiece model is not that of the checkpoint, or texts go through Moses before
            they become pieces or trigrams, or pieces stand for several rows: only `exact_rows` keeps that.
        SettingsError: the vocabulary cannot be kept.
    """
    if reading.moses and (reading.trigrams or reading.sentencepiece is not None):
        raise ModelDirectoryError(
            f"{checkpoint.path}: texts are tokenized by Moses first, which only an exact import supports; "
            "give --exact, or --moses none to skip Moses"
        )
    if reading.sentencepiece is not None:
        return _piece_rows(checkpoint, reading)
    strings = _strings(checkpoint)
    tokenizer: CharacterTrigramTokenizer | WordTokenizer
    if reading.trigrams:
        kept = [string for string in strings if len(string) == 3]
        tokenizer = CharacterTrigramTokenizer(write_strings(kept), reading.lower_case)
    else:
        kept = strings
        splitter, language = (Splitter.MOSES, reading.moses) if reading.moses else (Splitter.REGEX, "en")
        tokenizer = WordTokenizer(write_strings(kept), reading.lower_case, splitter, language)
    reached = len(kept) if reading.trigrams else _reached(tokenizer, kept)
    return ImportedRows(tokenizer, _table(checkpoint, kept), len(strings), len(strings) - reached)


def _piece_rows(checkpoint: OriginalCheckpoint, reading: Reading) -> ImportedRows:
    """The rows of pieces, by id."""
    model = reading.sentencepiece or b""
    whole = SentencePieceTokenizer(model, reading.lower_case, reading.segmentation)
    rows, dropped = _pieces_to_rows(checkpoint, whole, exact=False)
    table = torch.zeros(len(whole), checkpoint.table.shape[1])
    table[list(rows)] = checkpoint.table[list(rows.values())]
    table[whole.unknown_id] = checkpoint.table[checkpoint.unknown_row]
    tokenizer = SentencePieceTokenizer(model, reading.lower_case, reading.segmentation, dropped)
    known = {*checkpoint.vocabulary.values()} - {checkpoint.unknown_row}
    return ImportedRows(tokenizer, table, len(known), len(known - {*rows.values()}), len(dropped))


def _pieces_to_rows(
    checkpoint: OriginalCheckpoint, whole: SentencePieceTokenizer, exact: bool
) -> tuple[dict[int, int], list[int]]:
    """The row of each piece's id, and the ids of pieces without one.

    Raises:
        ModelDirectoryError: few pieces have a row, or (not exact) a piece has white space inside and several rows.
    """
    cased = str.lower if whole.lower_case else str
    rows: dict[int, int] = {}
    missing: list[int] = []
    for each in range(len(whole)):
        if (piece := whole.piece(each)) is None:
            continue
        found = [checkpoint.vocabulary[part] for part in cased(piece).split() if part in checkpoint.vocabulary]
        if len(found) > 1 and not exact:
            raise ModelDirectoryError(f"{checkpoint.path}: the piece {piece!r} stands for two rows; give --exact")
        if found:
            rows[each] = found[0]
        else:
            missing.append(each)
    if len(rows) < _LEAST_SHARE * (len(rows) + len(missing)) or not rows:
        raise ModelDirectoryError(
            f"{checkpoint.path}: has rows for {len(rows):,} of the {len(rows) + len(missing):,} pieces of the "
            "sentencepiece model, so it was trained with another one; give the model that came with it"
        )
    return rows, missing


def _strings(checkpoint: OriginalCheckpoint) -> list[str]:
    """All strings in the order of their rows, without `UUUNKKK`."""
    vocabulary = checkpoint.vocabulary
    strings = sorted((string for string in vocabulary if string != UNKNOWN), key=vocabulary.__getitem__)
    if not strings:
        raise SettingsError(
            f"{checkpoint.path}: the vocabulary has no strings except {UNKNOWN}; give another checkpoint"
        )
    return strings


def _table(checkpoint: OriginalCheckpoint, strings: Sequence[str]) -> Tensor:
    """The rows of strings and, behind them, that of `UUUNKKK`."""
    return checkpoint.table[[*map(checkpoint.vocabulary.__getitem__, strings), checkpoint.unknown_row]]


def _reached(tokenizer: Tokenizer, strings: Sequence[str]) -> int:
    """How many strings a tokenizer gives as one token on their own."""
    ids, offsets = tokenizer.encode(strings)
    alone = np.diff(offsets) == 1
    return int((ids[offsets[:-1]][alone] == np.arange(len(strings))[alone]).sum())
