"""Settings of neighbor search, shared by mining, scoring and everything that takes `--memory`."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError, short

AUTO = "auto"
_TOO_SMALL = re.compile(r"(?<![0-9])0+(?![0-9])|(?:HNSW0*1|NSG0*[1-9])(?![0-9])")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Size(int):
    """A number of bytes, shown in the form "4G"."""

    def __str__(self) -> str:
        """Format with the largest unit that divides the number."""
        divisors = {size: unit for unit, size in _UNITS.items() if self % size == 0}
        largest = max(divisors)
        return f"{self // largest}{divisors[largest]}"


def parse_memory(size: str | int) -> Size:
    """Convert a size such as 4G or 512M to bytes; a number is in bytes."""
    if isinstance(size, int):
        return Size(size)
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?)I?B?", str(size).strip().upper())
    if match is None:
        raise SettingsError(f"memory is {short(size)}; give a size like 4G or 512M")
    return Size(float(match[1]) * _UNITS[match[2]])


class VectorType(str, Enum):
    """Number types of stored embeddings."""

    FLOAT16 = "float16"
    INT8 = "int8"


@settings
class SearchSettings:
    """Settings of nearest-neighbor search.

    As long as it takes only minutes, everything is compared with everything. A faiss index may miss
    neighbors: before it is used, its search effort is raised until it finds enough neighbors of a
    sample (see `inexact.Effort`).
    """

    index: str = setting(
        AUTO,
        "kind of index: auto (exact search if that takes only minutes, otherwise a faiss index), or"
        " a faiss factory string such as Flat, HNSW32 or IVF2048,SQfp16",
    )
    recall: float = setting(
        0.9, "share of sampled sentences whose nearest neighbor an index must find", gt=0, le=1
    )
    vector_type: VectorType = setting(
        VectorType.FLOAT16, "number type of stored embeddings", option="--precision"
    )
    memory: Annotated[int, BeforeValidator(parse_memory)] = setting(
        Size(4 << 30),
        "maximum memory for an index: larger texts are searched in parts; libraries take about 500"
        " MB more",
        metavar="SIZE",
    )
    most_repeats: int | None = setting(
        None,
        "maximum number of times that a sentence may occur; more frequent sentences, such as menus"
        " and headers, are left out",
        ge=1,
        option="--most-repeats --max-repeats",
    )
    seed: int = setting(0, "seed of the samples", ge=0)

    def __post_init__(self) -> None:
        """Check combinations and formats."""
        if self.memory < 256 << 20:
            raise SettingsError(f"memory is {self.memory:,} bytes; give at least 256M")
        if not re.fullmatch(r"[A-Za-z][\w,()]*", self.index):
            raise SettingsError(
                f"index is {short(self.index)}; give auto or a faiss factory string such as HNSW32"
                " or Flat"
            )
        if _TOO_SMALL.search(self.index):  # faiss would end the process, or never end
            raise SettingsError(
                f"index is {short(self.index)}; give larger numbers, as in HNSW32 or IVF2048,SQfp16"
            )
