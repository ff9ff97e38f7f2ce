"""Fill in the address of the repository: `python docs/hooks/set_repository.py https://github.com/OWNER/NAME`.

Writes the badges and the clone command of README.md, and the addresses and versions (mike) of mkdocs.yml. Running it
again with another address replaces the first one. `mike deploy 0.1 latest --push` then publishes a version of the site.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?")

_BADGES = """\
[![tests]({repository}/actions/workflows/test.yml/badge.svg)]({repository}/actions)
![Python 3.10+](https://img.shields.io/badge/python-3.10%2B-blue)
[![Apache-2.0](https://img.shields.io/badge/license-Apache--2.0-green)](LICENSE)
[![docs](https://img.shields.io/badge/docs-site-teal)](https://{owner}.github.io/{name}/)
"""
_SITE = """\
site_url: https://{owner}.github.io/{name}/
repo_url: {repository}
edit_uri: edit/main/docs/
extra: {{version: {{provider: mike}}}}
"""


def filled(text: str, begin: str, end: str, content: str) -> str:
    """A text with other content between two marks, each on a line.

    Raises:
        ValueError: A mark is missing.
    """
    before, first, rest = text.partition(begin)
    _, second, after = rest.partition(end)
    if not (first and second):
        raise ValueError(f"no lines {begin!r} and {end!r}")
    return f"{before}{begin}\n{content}{end}{after}"


def set_repository(address: str, root: Path = ROOT) -> list[Path]:
    """Fill in the address; returns the changed files.

    Raises:
        ValueError: Not the address of a repository on GitHub, or a file without its marks.
    """
    if not (found := ADDRESS.fullmatch(address)):
        raise ValueError(f"{address!r} is not the address of a repository; give https://github.com/OWNER/NAME")
    names = {"owner": found[1], "name": found[2], "repository": f"https://github.com/{found[1]}/{found[2]}"}
    readme, site = root / "README.md", root / "mkdocs.yml"
    text = filled(readme.read_text(encoding="utf-8"), "<!-- badges -->", "<!-- /badges -->", _BADGES.format(**names))
    text = re.sub(r"git clone \S+ ", f"git clone {names['repository']} ", text)
    settings = filled(site.read_text(encoding="utf-8"), "# repository", "# /repository", _SITE.format(**names))
    readme.write_text(text, encoding="utf-8")
    site.write_text(settings, encoding="utf-8")
    return [readme, site]


def main() -> int:
    """Fill in the address that is given; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="such as https://github.com/OWNER/NAME")
    try:
        changed = set_repository(parser.parse_args().address)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{path}\n" for path in changed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
