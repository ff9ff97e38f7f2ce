"""The compiled kernels, and whether this installation has them.

Everything they do, torch does too, only slower; modules that use them ask `kernels()` and do without if it is None.
`python -m st_paragram.core.native` says whether they are there, and what to do if they are not.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from typing import Any

logger = logging.getLogger(__name__)

SWITCH = "ST_PARAGRAM_NATIVE"
#: What going without the kernels costs; docs/troubleshooting.md has measurements.
SLOWER = "encoding is 4 to 10 times slower, and training about 26 times"
_NAME = "st_paragram.core.native._kernels"
#: What the package expects of the kernels; counted up, here and in `src/module.cpp`, when a function of theirs changes.
INTERFACE = 7


def switched_off() -> bool:
    """Whether the environment variable `ST_PARAGRAM_NATIVE=0` asks to do without the kernels."""
    return os.environ.get(SWITCH) == "0"


def load_kernels() -> Any:  # noqa: ANN401 - a module without type stubs
    """Import the module of the compiled kernels, or in a clone without them that of the installed package.

    Raises:
        ImportError: it was not built, cannot be loaded, or was built from another version of the sources.
    """
    try:
        module = importlib.import_module(_NAME)
    except ModuleNotFoundError as error:
        from st_paragram.core.native.other_copies import load_from_elsewhere

        found_elsewhere = load_from_elsewhere(_NAME) if error.name == _NAME else None
        if found_elsewhere is None:
            raise
        module = found_elsewhere
    if (found := getattr(module, "interface", None)) != INTERFACE:
        raise ImportError(f"built from a different version: interface {found}, st_paragram needs {INTERFACE}")
    return module


@functools.cache
def kernels() -> Any:  # noqa: ANN401 - a module without type stubs, or None
    """The module of the compiled kernels; None if they are missing (with one warning) or switched off."""
    if switched_off():
        return None
    try:
        return load_kernels()
    except ImportError as error:
        from st_paragram.core.native.installation import advice, install_command, why_missing

        logger.warning(
            "the compiled kernels are missing: %s; everything works without them, but %s. %s: %s (python -m "
            "st_paragram.core.native says whether it has helped)",
            why_missing(error),
            SLOWER,
            advice(),
            install_command(),
        )
        return None


def obstacle() -> str | None:
    """Why the compiled kernels are not in use, in a few words; None if they are."""
    if kernels() is not None:
        return None
    return f"the compiled kernels are {f'switched off: {SWITCH}=0' if switched_off() else 'missing'}"
