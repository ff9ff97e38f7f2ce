"""Files outside docs/ that pages lead to, as parts of the site (a hook of MkDocs).

Pages name them as they lie in the repository, `../SECURITY.md`, so that the links work there, too.
The site gets a copy of each file that a page links to: Markdown as a page, everything else as it
is. The notebooks become pages next to their files.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {"SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)")


def _in_repository(target: str, folder: str) -> str:
    """The path from the root of the repository of what a page in a folder leads to."""
    return posixpath.normpath(posixpath.join(folder, target))


def _in_site(path: str) -> str:
    """Where in docs/ a file of the repository stands for the site."""
    return path[len("docs/") :] if path.startswith("docs/") else PAGES.get(path, f"files/{path}")


def _mend(text: str, folder: str, source: str) -> str:
    """Links of a text in a folder of the repository, as they must be in the page `source` of the
    site.
    """

    def mended(link: re.Match[str]) -> str:
        path = _in_repository(link[1], folder)
        there = (ROOT / path).is_file() or path in (f"docs/{page}" for page in PAGES.values())
        return (
            posixpath.relpath(_in_site(path), posixpath.dirname(source) or ".")
            if there
            else link[1]
        )

    return LINK.sub(mended, text)


def _notebook_page(path: Path) -> str:
    """A notebook as Markdown: text, code, and what the code printed."""
    parts = [f"This page is a notebook: [{path.name}]({path.name})."]
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        printed = "".join("".join(output.get("text", "")) for output in cell.get("outputs", ()))
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
    first = 1 if parts[1].startswith("# ") else 0  # the title comes first
    return "\n\n".join([*parts[1 : first + 1], parts[0], *parts[first + 1 :]])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to, and the notebooks as pages."""
    docs = Path(config.docs_dir)
    for notebook in sorted(docs.glob("notebooks/*.ipynb")):
        name = notebook.with_suffix(".md").relative_to(docs).as_posix()
        files.append(File.generated(config, name, content=_notebook_page(notebook)))
    wanted = set(PAGES)
    for page in files.documentation_pages():
        folder = posixpath.join("docs", posixpath.dirname(page.src_uri))
        wanted |= {_in_repository(link, folder) for link in LINK.findall(page.content_string)}
    for path in sorted(wanted):
        if path.startswith(("docs/", "..")) or not (ROOT / path).is_file():
            continue  # part of the site anyway, or a broken link, which MkDocs reports
        name = _in_site(path)
        if path.endswith(".md"):
            text = _mend((ROOT / path).read_text(encoding="utf-8"), posixpath.dirname(path), name)
            files.append(File.generated(config, name, content=text))
        else:
            files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links out of docs/ to their copies."""
    if page.file.generated_by:
        return markdown
    return _mend(
        markdown, posixpath.join("docs", posixpath.dirname(page.file.src_uri)), page.file.src_uri
    )
