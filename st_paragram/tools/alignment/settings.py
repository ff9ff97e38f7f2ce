"""Settings of sentence alignment."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings


@settings
class AlignmentSettings:
    """Settings of sentence alignment.

    The defaults were chosen on development documents (docs/mining.md).

    Examples:
        >>> from st_paragram import AlignmentSettings
        >>> AlignmentSettings(max_sentences=2).skip_cost
        0.44
    """

    max_sentences: int = setting(5, "maximum sentences of one side of a block", ge=1, le=10)
    skip_cost: float = setting(
        0.44, "cost of a skipped sentence; a lower value skips more sentences", ge=0
    )
    neighbors: int = setting(
        3, "most similar sentences of the other document that are the background of a side", ge=1
    )
    boundary: str | None = setting(
        None,
        "line that ends a section in both documents, such as .EOA; sections are aligned one by one",
        metavar="LINE",
    )
    with_skipped: bool = setting(
        False,
        "also write skipped sentences, with an empty other side and a score of 0",
        option="--all",
    )
