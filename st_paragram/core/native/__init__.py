"""The compiled kernels, if this installation has them.

Torch can do everything that they do, only slower. Modules call `kernels()` and work without them if
it is None.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from typing import Any

from st_paragram.errors import one_line

logger = logging.getLogger(__name__)

SWITCH = "ST_PARAGRAM_NATIVE"
_NAME = "st_paragram.core.native._kernels"
#: Version of the kernels' functions; raise it here and in `src/module.cpp` when one changes.
INTERFACE = 11


@functools.cache
def kernels() -> Any:
    """Return the module of the compiled kernels; None if they are missing or switched off.

    Missing kernels are reported once.
    """
    module, problem = _load()
    if problem and os.environ.get(SWITCH) != "0":
        logger.warning(
            "the compiled kernels are %s; everything works without them, but encoding and training"
            " are 4 to 26 times slower; install a C++ compiler, then reinstall st_paragram with pip"
            " install --force-reinstall --no-deps --no-cache-dir",
            problem,
        )
    return module


def obstacle() -> str | None:
    """Return why the compiled kernels are not in use; None if they are."""
    if kernels() is not None:
        return None
    return f"the compiled kernels are {_load()[1]}"


def _load() -> tuple[Any, str]:
    """Load the module; return None and the reason if that fails."""
    if os.environ.get(SWITCH) == "0":
        return None, f"switched off: {SWITCH}=0"
    try:
        module = importlib.import_module(_NAME)
    except ModuleNotFoundError:
        return None, "missing: they were not built when st_paragram was installed"
    except ImportError as error:
        return None, f"unusable: {one_line(error)}"
    version = getattr(module, "interface", None)
    if version != INTERFACE:
        return (
            None,
            f"unusable: built from a different version (interface {version}, not {INTERFACE})",
        )
    return module, ""


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_threads() -> int:
    """Return the number of threads: `OMP_NUM_THREADS`, or one for each usable processor."""
    threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if threads.isdecimal() and int(threads) > 0:
        return int(threads)
    return usable_cores()
