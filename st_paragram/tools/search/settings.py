"""How an index is chosen and searched; shared by mining runs, index folders and backgrounds of scores."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError, short
from st_paragram.tools.search.vectors import VectorType

AUTO, FLAT = "auto", "Flat"
QUERY_BLOCK = 1024  # queries searched together, always the same ones: rounding must not depend on shards

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Size(int):
    """A number of bytes that is shown as it is given, "4G"."""

    def __str__(self) -> str:
        """With the largest unit that it is a whole number of."""
        unit, bytes_ = max((item for item in _UNITS.items() if self % item[1] == 0), key=lambda item: item[1])
        return f"{self // bytes_}{unit}"


LEAST_MEMORY = Size(256 << 20)


def parse_memory(size: str | int) -> Size:
    """Bytes of a size such as 4G or 512M; a number is bytes.

    Raises:
        SettingsError: It is not a size.
    """
    if isinstance(size, int):
        return Size(size)
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?)I?B?", str(size).strip().upper())
    if match is None:
        raise SettingsError(f"memory is {short(size)}; give a size like 4G or 512M")
    return Size(float(match[1]) * _UNITS[match[2]])


@settings
class SearchSettings:
    """How nearest neighbors are searched for.

    "Flat" compares everything with everything, exactly. Other indexes lose some neighbors: before one is used, it is
    made to look harder until it finds the nearest neighbor of so many sentences of a sample (see `effort`).
    """

    index: str = setting(
        AUTO,
        "kind of index: auto (exact as long as that takes only minutes), Flat (exact), or a factory string of faiss, "
        "such as IVF2048,SQfp16 or HNSW32",
    )
    recall: float = setting(
        0.9, "share of sampled sentences whose nearest neighbor an approximate index must find", gt=0, le=1
    )
    vector_type: VectorType = setting(VectorType.FLOAT16, "number type of stored embeddings", option="--precision")
    memory: Annotated[int, BeforeValidator(parse_memory)] = setting(
        Size(4 << 30),
        "maximum memory for vectors and indexes, for all processes together; libraries take about 500 MB more",
        metavar="SIZE",
    )
    most_repeats: int | None = setting(
        None,
        "maximum number of times that a sentence may occur; more frequent sentences, such as menus and "
        "headers, are left out",
        ge=1,
        option="--most-repeats --max-repeats",
    )
    seed: int = setting(0, "seed of the samples", ge=0)

    def __post_init__(self) -> None:
        """Check what a range cannot say.

        Raises:
            SettingsError: Too little memory, or an index that cannot be a factory string.
        """
        if self.memory < LEAST_MEMORY:
            raise SettingsError(f"memory is {self.memory:,} bytes; give at least {LEAST_MEMORY}")
        if self.index != AUTO and not re.fullmatch(r"[A-Za-z][\w,()]*", self.index):
            raise SettingsError(
                f"index is {short(self.index)}; give auto, Flat or a faiss factory string like IVF1024,SQfp16"
            )
