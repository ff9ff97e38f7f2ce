"""The site's tabs and boxes, made from plain Markdown."""

import importlib.util
from pathlib import Path

HOOK = Path(__file__).parents[1] / "docs" / "hooks" / "tabs_and_notes.py"


def made(markdown):
    spec = importlib.util.spec_from_file_location("tabs_and_notes", HOOK)
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook.on_page_markdown(markdown)


def test_commands_and_python_become_tabs():
    code = "```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n"
    page = f"Text.\n\n<!-- tabs -->\n\n    one a\n    two b\n\n{code}\nMore.\n"
    second = f"<!-- tabs -->\n\n    three\n\n{code}"
    assert made(f"{page}{second}").count('=== "Python"') == 2
    assert made(page) == (
        'Text.\n\n=== "Command line"\n\n    ```sh\n    one a\n    two b\n    ```\n\n=== "Python"\n\n    ```python\n'
        "    x = 1\n    print(x)\n    ```\n\n    ```text\n    1\n    ```\n\nMore.\n\n"
    )


def test_a_marked_paragraph_becomes_a_box():
    assert made("<!-- warning -->\n**Do not.** Really\nnot.\n\nNext.") == (
        "!!! warning\n\n    **Do not.** Really\n    not.\n\nNext.\n"
    )


def test_other_pages_stay_as_they_are():
    page = "# Title\n\n    a command\n\n```python\nx = 1\n```\n\n<!-- not run: no -->\n"
    assert made(page) == f"{page}\n"


def test_every_mark_of_the_pages_is_used():
    for path in sorted((HOOK.parents[1]).rglob("*.md")):
        text = made(path.read_text(encoding="utf-8").replace("`<!--", "`"))
        assert not any(f"<!-- {mark} -->" in text for mark in ("tabs", "warning", "tip", "note")), path
