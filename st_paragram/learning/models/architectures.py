"""The architectures of model directories: what writes a pipeline into a folder, and what builds it from there.

Each is a module. Those of families are found through `core.families`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, cast

from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.directory import AVERAGING, OWN_MODULES, STOCK, check_architecture
from st_paragram.core.encoding.table import TableType
from st_paragram.core.families import FAMILIES, entry_of_architecture
from st_paragram.learning.models import averaging_directory, own_modules, stock
from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder


class Architecture(Protocol):
    """How pipelines of one kind are kept in a folder: the functions of a module."""

    def holds(self, model: SentenceTransformer) -> bool:
        """Whether a pipeline is of this kind."""

    def check(self, model: SentenceTransformer) -> None:
        """Refuse a pipeline that `write` would refuse.

        Raises:
            ModelDirectoryError: it cannot be kept.
        """

    def write(
        self,
        model: SentenceTransformer,
        folder: Path,
        dtype: TableType | str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        """Write a pipeline, with another type of the table and its first components only if asked for."""

    def read(
        self, folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None
    ) -> SentenceTransformer:
        """Build the pipeline from a folder and the entries of its `st_paragram.json`."""

    def read_weights(self, folder: Path, into: SentenceTransformer) -> None:
        """Fill a pipeline of the same kind and shape from a folder."""


_OWN: dict[str, Architecture] = {AVERAGING: averaging_directory, STOCK: stock, OWN_MODULES: own_modules}


def _offered(model: SentenceTransformer) -> Iterator[Architecture]:
    """All of them, in the order in which a pipeline is offered to them.

    A pipeline of a class that only a family has is offered to families first. Any other may be an averaging model,
    which is looked at first: it takes no import of a family to find that out.
    """
    if type(model) in (SentenceTransformer, ParagramEncoder):
        yield averaging_directory
    for entry in FAMILIES.values():
        if entry.architectures:
            yield cast("Architecture", entry.module("directory"))
    yield from _OWN.values()


def architecture_of(model: SentenceTransformer) -> Architecture:
    """The architecture that a pipeline is kept in: the first that holds it."""
    return next(architecture for architecture in _offered(model) if architecture.holds(model))


def architecture_named(name: str, folder: Path) -> Architecture:
    """The architecture that a folder's `st_paragram.json` names.

    Raises:
        ModelDirectoryError: there is none of this name.
    """
    check_architecture(name, folder)
    if entry := entry_of_architecture(name):
        return cast("Architecture", entry.module("directory"))
    return _OWN[name]
