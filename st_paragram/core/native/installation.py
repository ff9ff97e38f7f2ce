"""Why an installation lacks the compiled kernels, and the command that installs it with them.

`pip install --force-reinstall st_paragram` alone does not help: pip keeps the wheel that it built without kernels in
its cache, and installs that again.
"""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_INSTALL = "pip install --force-reinstall --no-deps --no-cache-dir"
_ROOT = Path(__file__).resolve().parents[3]


def why_missing(error: ImportError) -> str:
    """Why the kernels cannot be imported, in plain words."""
    if isinstance(error, ModuleNotFoundError):
        return "they were not built when st_paragram was installed"
    return f"they cannot be loaded ({error})"


def install_command() -> str:
    """The command that builds the kernels anew and installs them."""
    return f"{_INSTALL} {_origin(_ROOT)}"


def _origin(root: Path) -> str:
    """What pip is to install: the source tree `root`, the address that st_paragram came from, or its name.

    The address stands in `direct_url.json` beside the package's metadata (PEP 610).
    """
    if (root / "setup.py").is_file():
        return f"--editable {shlex.quote(str(root))}"
    try:
        record = json.loads(distribution("st_paragram").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        record = {}
    url, repository = record.get("url", ""), record.get("vcs_info", {}).get("vcs")
    if not url or url.endswith(".whl"):  # a wheel holds what was built once
        return "--no-binary st_paragram st_paragram"
    return shlex.quote(f"{repository}+{url}" if repository else url)
