"""The tests of the documentation find what is wrong: commands, options, blocks, outputs."""

from __future__ import annotations

import shlex

import pytest
from support.doc_commands import mention_problem, problem
from support.doc_pages import Block, assert_alike, blocks

WRONG = {
    "st-paragram embed lines.txt --output lines.npy --norm2": "--norm2",
    "st-paragram embed": "required",
    "st-paragram embad lines.txt": "no command embad",
    "st-paragram mine --margin cosine --source a --target b --output c": "invalid choice: 'cosine'",
    "st-paragram train bitext --lang es --dim many": "invalid int value: 'many'",
    "python recipes/train_everything.py": "no script recipes/train_everything.py",
    "python recipes/train_bitext.py --lang es --dims 3": "--dims",
    "python benchmarks/speed.py --rounds many": "invalid int value: 'many'",
    "python -m st_paragram.nothing": "no module st_paragram.nothing",
    "make tea": "no target ['tea']",
    'pip install "st_paragram[mining,tea]"': "no extra ['tea']",
    "embed lines.txt": "no program that the tests know",
}


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_command_is_found(command):
    assert WRONG[command] in problem(shlex.split(command))


def test_a_wrong_option_within_a_sentence_is_found():
    assert "--outputs" in mention_problem(["st-paragram", "embed", "--outputs"])
    assert mention_problem(["st-paragram", "embed", "--output"]) is None
    assert mention_problem(["st-paragram", "prepare", "--tokens", "word|trigram"]) is None


PAGE = """Text, and a list:

- one

      that is no command

    st-paragram embed a.txt --output "a b.npy" > log; ls   # a comment
    A=1 python x.py \\
        --more

```console
$ st-paragram info p-sp-es | head
p-sp-es: prints this
```

<!-- not run: it takes hours -->

```python
print(1.25)
```

```text
1.249
```

!!! note

    Text in a box.
"""


def test_a_page_is_cut_into_its_blocks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("- one\n\n      that is no command\n\n", ""), encoding="utf-8")
    shell, console, python, text = blocks(page)
    assert list(shell.commands()) == [
        ["st-paragram", "embed", "a.txt", "--output", "a b.npy"],
        ["ls"],
        ["python", "x.py", "--more"],
    ]
    assert list(console.commands()) == [["st-paragram", "info", "p-sp-es"], ["head"]]
    assert (python.language, python.text, python.not_run) == ("python", "print(1.25)", "it takes hours")
    assert (text.text, text.line - python.end, shell.not_run) == ("1.249", 3, "")
    page.write_text(PAGE.split("\n    st-paragram")[0], encoding="utf-8")
    assert blocks(page) == []


def test_outputs_may_differ_by_rounding_and_by_nothing_else(tmp_path):
    block = Block(tmp_path, 1, "text", "[0.97, 1.0] two\n  lines")
    assert_alike("[0.971, 1.000] two lines\n", block)
    for other in ("[0.99, 1.0] two lines", "[0.97, 1.0] two words", "[0.97] two lines"):
        with pytest.raises((AssertionError, ValueError)):
            assert_alike(other, block)
