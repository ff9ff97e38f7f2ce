"""What setup.cfg requires is what the package imports, each with a floor."""

import ast
import configparser
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import st_paragram

OWN = Path(st_paragram.__file__).parent
PARTS = {"pydantic_core"}  # of packages that require them in one version


def required():
    """The requirements of the package and of all extras."""
    parser = configparser.ConfigParser()
    parser.read(OWN.parent / "setup.cfg", encoding="utf-8")
    texts = [parser["options"]["install_requires"], *parser["options.extras_require"].values()]
    return [Requirement(line) for text in texts for line in text.split("\n") if line]


def imported():
    """The top-level modules of other packages that the package imports anywhere."""
    names = set()
    for path in OWN.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - {"st_paragram", *PARTS, *sys.stdlib_module_names}


def test_everything_that_is_imported_is_required():
    named = {canonicalize_name(requirement.name) for requirement in required()}
    found = metadata.packages_distributions()
    for name in imported():
        packages = {canonicalize_name(package) for package in found.get(name, [name])}
        assert packages & named, (
            f"st_paragram imports {name}; setup.cfg requires none of {', '.join(sorted(packages))}"
        )


def test_every_requirement_has_a_floor():
    assert not [
        str(each)
        for each in required()
        if not any(part.operator == ">=" for part in each.specifier)
    ]
