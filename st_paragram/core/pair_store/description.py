"""What a pair store says of itself, read from its header."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.files import FileDescription, describe_files
from st_paragram.core.pair_store import PairStore


@dataclass(frozen=True)
class StoreDescription:
    """Description of a pair store.

    Args:
        name: of the file.
        format_version: of the file.
        languages: of side a and side b.
        pairs: their number.
        tokenizers: kind, number of ids and options, of both sides together or of each.
        max_length: ids at which texts were cut, or None.
        seed: of the shuffle.
        settings: of the preparation, with its report; JSON values.
        content_sha256: of the content, as the file says; None if it was written before there was such a digest.
        files: the one file.
    """

    name: str
    format_version: int
    languages: tuple[str, str]
    pairs: int
    tokenizers: list[dict[str, Any]]
    max_length: int | None
    seed: int
    settings: dict[str, Any]
    content_sha256: str | None
    files: dict[str, FileDescription]


def describe_store(path: Path) -> StoreDescription:
    """Describe a pair store; its ids are not looked through (`check_store` does that).

    Raises:
        StoreError: it is none, or is damaged.
    """
    store = PairStore(path, check_ids=False)
    shown = store.tokenizers[:1] if store.shared_tokenizer else store.tokenizers
    tokenizers = [{"kind": each.kind, "ids": len(each), **each.options} for each in shown]
    return StoreDescription(
        path.name,
        store.format_version,
        store.languages,
        len(store),
        tokenizers,
        store.max_length,
        store.seed,
        store.settings,
        store.stated_digest,
        describe_files(path),
    )


def check_store(path: Path) -> str:
    """Look through all rows of a pair store, and compare the digest of its content; says what was found.

    Raises:
        StoreError: it is none, or is damaged.
    """
    store = PairStore(path)
    digest = store.compute_digest()
    if store.stated_digest is None:
        return f"{len(store):,} rows are sound; the store has no digest to compare, that of its content is {digest}"
    return f"{len(store):,} rows are sound, and the content is what was written"
