"""Tabs and boxes on the site from Markdown that also reads well without it.

`<!-- tabs -->` above a block of commands and the Python below it turns both into tabs. `<!-- warning -->` (or `tip`, or
`note`) right above a paragraph turns it into a box.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

_TABS = re.compile(
    r"^<!-- tabs -->\n\n(?P<shell>(?:    [^\n]*\n)+)\n(?P<python>```python\n.*?^```\n(?:\n```text\n.*?^```\n)?)",
    re.MULTILINE | re.DOTALL,
)
_BOX = re.compile(r"^<!-- (?P<kind>warning|tip|note) -->\n(?P<text>(?:.+\n)+)", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:  # noqa: ANN401
    """Turn the marks of a page into tabs and boxes."""
    return _BOX.sub(_box, _TABS.sub(_tabs, f"{markdown}\n"))


def _tabs(found: re.Match[str]) -> str:
    shell = f"```sh\n{textwrap.dedent(found['shell'])}```\n"
    tabs = (("Command line", shell), ("Python", found["python"]))
    return "\n".join(f'=== "{title}"\n\n{textwrap.indent(block, "    ")}' for title, block in tabs)


def _box(found: re.Match[str]) -> str:
    return f"!!! {found['kind']}\n\n{textwrap.indent(found['text'], '    ')}"
