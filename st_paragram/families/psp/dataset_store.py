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
    """Store the pairs of a data set with two text columns, or of all data sets of a `DatasetDict`.

    They may be the two languages of the Hub's column `translation`. The store is made once for a
    tokenizer and the fingerprint of the data, which `datasets` changes with the data.
    """
    data_sets = list(data.values()) if isinstance(data, DatasetDict) else [data]
    parts = [_two_columns(part) for part in data_sets]
    key = digest(
        [part._fingerprint for part in parts],
        tokenizer.kind,
        tokenizer.options,
        hashlib.sha256(tokenizer.content).hexdigest(),
    )
    path = writable_cache("stores") / f"dataset-{key[:32]}.h5"
    with output_lock(path, wait=True):
        if not path.is_file():
            with PairStoreWriter(path, ("first", "second"), tokenizer) as writer:
                for part in parts:
                    _append(writer, part, tokenizer)
    return PairStore(path)


def _two_columns(data: Any) -> Dataset:
    """Return a data set with one text column for each language; refuse other data."""
    if not isinstance(data, Dataset):
        raise SettingsError(
            f"train_dataset is {type(data).__name__}; give a Dataset, a DatasetDict or a PairStore"
        )
    if not all(isinstance(feature, Value) for feature in data.features.values()):
        data = data.flatten()  # a column `translation` becomes a column per language
    kinds = {}
    for column, feature in data.features.items():
        kinds[column] = str(getattr(feature, "dtype", type(feature).__name__))
    if len(kinds) != 2 or not set(kinds.values()) <= {"string", "large_string"}:
        columns = ", ".join(f"{column} ({kind})" for column, kind in kinds.items())
        raise SettingsError(
            f"train_dataset has columns {columns}; choose two text columns with select_columns"
        )
    return data


def _append(writer: PairStoreWriter, data: Dataset, tokenizer: Tokenizer) -> None:
    first, second = data.column_names
    starts = range(0, len(data), _ROWS)
    for start in tqdm(starts, desc="tokenizing", unit="x 10,000 pairs", disable=None):
        rows = data[start : start + _ROWS]
        for column in (first, second):
            if None in rows[column]:
                row = start + rows[column].index(None)
                raise SettingsError(f"train_dataset: row {row} has no {column}; remove such rows")
        writer.append(*tokenizer.encode(rows[first]), *tokenizer.encode(rows[second]))
