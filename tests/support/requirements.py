"""What setup.cfg requires, and whether just that is installed: the oldest versions it allows, which tests then run on.

make test-lowest
python tests/support/requirements.py    # its middle part: 1 if something newer than the oldest is installed
"""

from __future__ import annotations

import configparser
from importlib import metadata
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


def newer_than_needed() -> list[str]:
    """What is installed, of the package's own requirements and those of the extra dev, in a newer version."""
    lines = []
    for requirement in [*required()[""], *required()["dev"]]:
        if requirement.marker is not None and not requirement.marker.evaluate():  # not for this system
            continue
        there = Version(Version(metadata.version(requirement.name)).public)  # without +cpu
        if there != floor(requirement):
            lines.append(f"{requirement}: {there} is the oldest that goes with the others; setup.cfg must say so")
    return lines


if __name__ == "__main__":
    raise SystemExit("\n".join(newer_than_needed()) or 0)
