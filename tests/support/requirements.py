"""What setup.cfg requires."""

from __future__ import annotations

import configparser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

SETUP = Path(__file__).parents[2] / "setup.cfg"


def required(path: Path = SETUP) -> dict[str, list[Requirement]]:
    """The requirements of the package ("") and of each extra."""
    parser = configparser.ConfigParser()
    parser.read(path, encoding="utf-8")
    texts = {"": parser["options"]["install_requires"], **parser["options.extras_require"]}
    return {extra: [Requirement(line) for line in text.split("\n") if line] for extra, text in texts.items()}


def floor(requirement: Requirement) -> Version | None:
    """The oldest version that it allows; None if it does not say."""
    return max((Version(each.version) for each in requirement.specifier if each.operator == ">="), default=None)
