"""The compiled kernels, and whether this installation has them.

Everything they do, torch does too, only slower; modules that use them ask `kernels()` and go on without if it is None.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from typing import Any

logger = logging.getLogger(__name__)

SWITCH = "ST_PARAGRAM_NATIVE"


@functools.cache
def kernels() -> Any:  # noqa: ANN401 - a module without type stubs, or None
    """The module of the compiled kernels, or None (with one warning) where it was not built.

    The environment variable `ST_PARAGRAM_NATIVE=0` does without it.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        return importlib.import_module("st_paragram.native._kernels")
    except ImportError as error:
        logger.warning(
            "st_paragram was installed without its compiled kernels (%s) and runs on torch alone, several times "
            "slower; install a C++ compiler, then: pip install --force-reinstall --no-deps st_paragram",
            error,
        )
        return None
