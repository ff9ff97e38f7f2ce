"""Pair stores: encoded parallel sentences in one HDF5 file, written once and read through memory maps."""

from st_paragram.core.pair_store.format import FORMAT_VERSION, SIDES
from st_paragram.core.pair_store.reader import PairStore
from st_paragram.core.pair_store.writer import PairStoreWriter

__all__ = ["FORMAT_VERSION", "SIDES", "PairStore", "PairStoreWriter"]
