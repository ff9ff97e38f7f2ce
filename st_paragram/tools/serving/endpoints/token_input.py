"""Texts from token numbers, which some of OpenAI's clients send in place of texts.

The numbers are those of OpenAI's vocabulary `cl100k_base`, which LangChain takes for models that it does not know.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from st_paragram.tools.serving.errors import Refused

ENCODING = "cl100k_base"
#: The name under which tiktoken caches the vocabulary: the SHA-1 of the address that it would load it from.
CACHED_AS = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_ADVICE = "send texts (LangChain: check_embedding_ctx_length=False)"
_loading = threading.Lock()


def texts_of_tokens(lists: Sequence[Sequence[int]]) -> list[str]:
    """The texts of lists of token numbers.

    Raises:
        Refused: the vocabulary is not on this machine, or has no token with one of the numbers.
    """
    with _loading:
        encoding = _encoding()
    if encoding is None:
        raise Refused(400, f"input has token numbers, which this server cannot read; {_ADVICE}", "input")
    for number, tokens in enumerate(lists):
        if tokens and max(tokens) > encoding.max_token_value:
            seen = f"list {number} of input has a token number that {ENCODING} has not"
            raise Refused(400, f"{seen}; {_ADVICE}", "input")
    try:
        return [encoding.decode(list(tokens)) for tokens in lists]
    except KeyError:  # numbers between the special tokens
        raise Refused(400, f"input has a token number that {ENCODING} has not; {_ADVICE}", "input") from None


@lru_cache(maxsize=1)
def _encoding() -> Any:  # noqa: ANN401 - tiktoken's class, where it is installed
    """The vocabulary, if tiktoken is installed and has it in its cache; a server fetches nothing."""
    try:
        import tiktoken
    except ImportError:
        return None
    return tiktoken.get_encoding(ENCODING) if (_cache() / CACHED_AS).is_file() else None


def _cache() -> Path:
    """The folder in which tiktoken looks."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    return Path(named) if named else Path(tempfile.gettempdir()) / "data-gym-cache"
