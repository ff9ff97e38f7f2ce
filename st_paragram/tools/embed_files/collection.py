"""Texts and their columns, for mining."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.errors import SettingsError


def one_for_each(columns: Sequence[str | None], texts: Sequence[str]) -> tuple[str | None, ...]:
    """The column of each text, None for plain text, which all texts are if nothing is named."""
    if columns and len(columns) != len(texts):
        seen = f"{len(columns)} columns for {len(texts)} texts"
        raise SettingsError(f"{seen}; name one column per text, or None for plain text")
    return tuple(columns) or (None,) * len(texts)
