"""A band of near duplicates: it takes the place of what makes rows equal, and brings rows together that may be near."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from st_paragram.tools.cleaning.near_duplicates import NearDuplicates


@dataclass(frozen=True)
class Band:
    """One band.

    Attributes:
        near: Which rows are near.
        number: Of the band, from 0.
    """

    near: NearDuplicates
    number: int

    @property
    def value(self) -> str:
        """Tells it from other bands and from what makes rows equal."""
        return json.dumps([self.near.as_json(), self.number])

    def keys(self, texts: Sequence[bytes], seed: int) -> list[bytes]:
        """The key of each row, 32 hexadecimal digits, from its two texts with a tab between."""
        pairs = [text.decode("utf-8").split("\t") for text in texts]
        return [b"%016x%016x" % (key, key) for key in self.near.band_keys(pairs, self.number, seed).tolist()]
