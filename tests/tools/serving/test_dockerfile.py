"""The commands of the Dockerfile, which may not be built where tests run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from st_paragram.cli.main import parse

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")


def instruction(name: str) -> list[str]:
    """The words of the last instruction of this name."""
    return json.loads(re.findall(rf"^\s*{name} (\[.*\])$", DOCKERFILE, re.MULTILINE)[-1])


@pytest.mark.parametrize(
    ("extras", "packages"),
    [("serve", {"uvicorn"}), ("serve,search", {"uvicorn", "lancedb", "pyarrow"})],
)
def test_the_packages_of_extras_are_installed_by_name(extras, packages):
    script = re.search(r'python -c "(import configparser.*?)" ', DOCKERFILE)[1]
    requirements = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"EXTRAS": extras},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    names = {re.split("[<>=]", requirement)[0] for requirement in requirements}
    assert packages <= names and "torch" not in names
    assert ("lancedb" in names) == ("search" in extras)


def test_the_server_listens_where_its_health_is_checked():
    program, command, *options = instruction("ENTRYPOINT")
    assert program == "st-paragram"
    for words in (instruction("CMD"), ["p-sp-mini", "--index", "/index"]):
        arguments = parse([command, *options, *words])
        assert (arguments.host, arguments.model) == ("0.0.0.0", "p-sp-mini")
    assert f"http://127.0.0.1:{arguments.port}/health" in DOCKERFILE
    assert f"EXPOSE {arguments.port}" in DOCKERFILE
    assert DOCKERFILE.index("USER server") < DOCKERFILE.index("ENTRYPOINT")
