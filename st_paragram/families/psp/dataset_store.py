"""Data sets with two text columns as pair stores, tokenized once and stored in the cache."""

from __future__ import annotations

import hashlib
from typing import Any

from datasets import Dataset, DatasetDict, Value
from tqdm.auto import tqdm

from st_paragram.core.files import digest
from st_paragram.core.folders import writable_cache
from st_paragram.core.outputs import output_lock
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError

_ROWS = 10_000  # tokenized at a time


def store_of(data: object, tokenizer: Tokenizer) -> PairStore:
    """Store the pairs of a `datasets.Dataset`, or of all data sets in a `DatasetDict`, each with
    two text columns.

    They may be the two languages of the Hub's column `translation`. The store is made once for a
    tokenizer and the fingerprint of the data, which `datasets` changes with the data.
    """
    given: dict[Any, Any] = dict(data) if isinstance(data, DatasetDict) else {"": data}
    parts: dict[Any, Dataset] = {}
    for name, part in given.items():
        if not isinstance(part, Dataset):
            raise SettingsError(
                f"train_dataset is {type(part).__name__}; give a Dataset, a DatasetDict or a"
                " PairStore"
            )
        if not all(isinstance(feature, Value) for feature in part.features.values()):
            part = part.flatten()  # a column `translation` becomes a column per language
        parts[name] = part
        kinds = [
            str(getattr(feature, "dtype", type(feature).__name__))
            for feature in part.features.values()
        ]
        if kinds not in (["string"] * 2, ["large_string"] * 2):
            seen = ", ".join(
                f"{column} ({kind})" for column, kind in zip(part.column_names, kinds, strict=True)
            )
            seen = f"train_dataset{name and f' {name!r}'} has columns {seen}"
            raise SettingsError(f"{seen}; choose two text columns with select_columns")
    vocabulary = hashlib.sha256(tokenizer.content).hexdigest()
    key = digest(
        [part._fingerprint for part in parts.values()],
        tokenizer.kind,
        tokenizer.options,
        vocabulary,
    )
    path = writable_cache("stores") / f"dataset-{key[:32]}.h5"
    with output_lock(path, wait=True):
        if not path.is_file():
            with PairStoreWriter(path, ("first", "second"), tokenizer) as writer:
                for part in parts.values():
                    _append(writer, part, tokenizer)
    return PairStore(path)


def _append(writer: PairStoreWriter, part: Dataset, tokenizer: Tokenizer) -> None:
    first, second = part.column_names
    for start in tqdm(
        range(0, len(part), _ROWS), desc="tokenizing", unit="x 10,000 pairs", disable=None
    ):
        rows = part[start : start + _ROWS]
        for column in (first, second):
            if None in rows[column]:
                row = start + rows[column].index(None)
                raise SettingsError(f"train_dataset: row {row} has no {column}; remove such rows")
        writer.append(*tokenizer.encode(rows[first]), *tokenizer.encode(rows[second]))
