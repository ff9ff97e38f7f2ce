"""What counts as a duplicate, and which one of several stays."""

from __future__ import annotations

from enum import Enum

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.min_hashes import minima_of_a_key

#: The least probability that two texts are compared whose similarity is just the threshold.
FOUND = 0.99
#: Words, or characters, of an n-gram unless the settings say otherwise.
_NGRAM = {"word": 1, "character": 5}


class Method(str, Enum):
    """How duplicates are found."""

    EXACT = "exact"
    MINHASH = "minhash"


class Sides(str, Enum):
    """The sides of a pair that must be duplicates of those of another pair."""

    BOTH = "both"
    EITHER = "either"
    FIRST = "first"
    SECOND = "second"


class Keep(str, Enum):
    """Which one of several duplicates stays."""

    FIRST = "first"
    LONGEST = "longest"


class Unit(str, Enum):
    """The unit of n-grams."""

    WORD = "word"
    CHARACTER = "character"


@settings
class DeduplicationSettings:
    """What counts as a duplicate, and which one of several stays."""

    methods: tuple[Method, ...] = (Method.EXACT, Method.MINHASH)
    sides: Sides = setting(Sides.BOTH, "sides of a pair that must duplicate those of another pair for it to be removed")
    keep: Keep = setting(Keep.FIRST, "duplicate to keep: the first, or the longest (in bytes)")
    normalize: bool = setting(
        True,
        "exact duplicates have the same letters and digits",
        option_help="require exact duplicates to be equal in every character; by default, case, spaces and punctuation "
        "are ignored",
    )
    threshold: float = setting(
        0.8, "minhash: minimum Jaccard similarity of near-duplicates, the share of n-grams in common", gt=0, le=1
    )
    unit: Unit = setting(Unit.WORD, "minhash: unit of n-grams")
    ngram: int | None = setting(
        None, "minhash: length of an n-gram (default: 1 for words, 5 for characters)", ge=1, le=100
    )
    bands: int = setting(
        20,
        "minhash: keys per text; more keys save comparisons but take more disk space",
        ge=1,
        le=200,
    )

    def __post_init__(self) -> None:
        """Check what a range cannot say.

        Raises:
            SettingsError: No method is given.
        """
        if not self.methods:
            raise SettingsError("no method is given; give exact or minhash")

    @property
    def size(self) -> int:
        """Words, or characters, of an n-gram."""
        return self.ngram or _NGRAM[self.unit.value]

    @property
    def minima(self) -> int:
        """Minimum hashes of a key: the most that find texts at the threshold with a probability of 0.99."""
        return minima_of_a_key(self.threshold, self.bands, FOUND)

    def views(self, columns: int) -> tuple[tuple[int, ...], ...]:
        """The groups of sides that must be duplicates together; one of the groups is enough.

        Args:
            columns: Texts in a row, 1 or 2.
        """
        if columns == 1:
            return ((0,),)
        both, either, first, second = ((0, 1),), ((0,), (1,)), ((0,),), ((1,),)
        return {Sides.BOTH: both, Sides.EITHER: either, Sides.FIRST: first, Sides.SECOND: second}[self.sides]
