"""Why an installation lacks the compiled kernels, and the command that installs it with them.

`pip install --force-reinstall st_paragram` alone does not help: pip keeps the wheel that it built without kernels in
its cache, and installs that again.
"""

from __future__ import annotations

import json
import shlex
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from st_paragram.core.native.other_copies import compiled_elsewhere

_INSTALL = "pip install --force-reinstall --no-deps --no-cache-dir"
_ROOT = Path(__file__).resolve().parents[3]
_COMPILERS = ("c++", "g++", "clang++", "cl")


def why_missing(error: ImportError) -> str:
    """Why the kernels cannot be imported, in plain words."""
    if not isinstance(error, ModuleNotFoundError):
        return f"they cannot be loaded ({error})"
    if not _is_clone():
        return "they were not built when st_paragram was installed"
    here = f"Python imports st_paragram from {_ROOT}, where they are not compiled"
    copies = compiled_elsewhere()
    return f"{here}, and those of {copies[0].parents[3]} were built from other sources" if copies else here


def advice() -> str:
    """What to do before `install_command`, to be followed by it."""
    first = "" if any(map(shutil.which, _COMPILERS)) else "install a C++ compiler (g++ or clang++), then "
    other = "start Python in another folder to use the installed package, or " if compiled_elsewhere() else ""
    steps = f"{other if _is_clone() else ''}{first}run"
    return steps[0].upper() + steps[1:]


def _is_clone() -> bool:
    """Whether Python imports the package from a source tree."""
    return (_ROOT / "setup.py").is_file()


def install_command() -> str:
    """The command that rebuilds the kernels and installs them."""
    return f"{_INSTALL} {_origin()}"


def _origin() -> str:
    """What pip is to install: the source tree, the address that st_paragram came from, or its name.

    The address is in `direct_url.json`, next to the package's metadata (PEP 610).
    """
    if _is_clone():
        return f"--editable {shlex.quote(str(_ROOT))}"
    try:
        record = json.loads(distribution("st_paragram").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        record = {}
    url, repository = record.get("url", ""), record.get("vcs_info", {}).get("vcs")
    if not url or url.endswith(".whl"):  # a wheel holds what was built once
        return "--no-binary st_paragram st_paragram"
    return shlex.quote(f"{repository}+{url}" if repository else url)
