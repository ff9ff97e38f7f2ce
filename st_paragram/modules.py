"""The public modules for pipelines of sentence-transformers, under a name of their kind.

They are imported when they are first used, as in `st_paragram`.

Example:
    >>> from st_paragram.modules import MeanPool, SentencePieceEmbedding
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import st_paragram
from st_paragram.errors import MissingExtraError, MissingNameError

if TYPE_CHECKING:
    from st_paragram import (
        MeanPool,
        SentencePieceEmbedding,
        SideBySide,
        TokenEmbedding,
        UseEncoder,
    )

__all__ = ["MeanPool", "SentencePieceEmbedding", "SideBySide", "TokenEmbedding", "UseEncoder"]


def __getattr__(name: str) -> Any:
    """Import a module from where it is defined (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"no module {name!r} in st_paragram; choose {', '.join(__all__)}")
    try:
        return getattr(st_paragram, name)
    except MissingNameError as error:  # an AttributeError, whose message `from` does not show
        raise MissingExtraError(str(error)) from error


def __dir__() -> list[str]:
    """Public names."""
    return __all__
