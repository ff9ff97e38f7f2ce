"""What setup.cfg requires is what the package imports, and has a floor: one, wherever it stands."""

import ast
import sys
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name
from support.requirements import floor, required

import st_paragram

OWN = Path(st_paragram.__file__).parent
HOSTS = {"opusfilter"}  # programs that load a module of ours, not the other way round


def imported():
    """The top-level modules of other packages that the package imports anywhere."""
    names = set()
    for path in OWN.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - {"st_paragram", *HOSTS, *sys.stdlib_module_names}


def test_everything_that_is_imported_is_required():
    named = {canonicalize_name(requirement.name) for each in required().values() for requirement in each}
    found = metadata.packages_distributions()
    for name in imported():
        packages = {canonicalize_name(package) for package in found.get(name, [name])}
        assert packages & named, f"st_paragram imports {name}; setup.cfg requires none of {', '.join(sorted(packages))}"


def test_every_requirement_has_one_floor():
    floors = {}
    for requirements in required().values():
        for requirement in requirements:
            oldest = floor(requirement)
            assert oldest is not None, f"{requirement} has no floor"
            assert floors.setdefault(canonicalize_name(requirement.name), oldest) == oldest, (
                f"{requirement}, and elsewhere {floors}"
            )
