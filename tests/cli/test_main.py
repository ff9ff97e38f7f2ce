"""The command itself: what it imports, how it answers, what it refuses, and what it shows first."""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from st_paragram.cli.main import COMMANDS, build_parser, main
from st_paragram.cli.overview import START, TASKS
from st_paragram.core.families import commands

HEAVY = ("torch", "sentence_transformers", "transformers", "datasets", "faiss", "mteb", "matplotlib", "h5py", "scipy")
EVERY_HELP = """
import contextlib, io, json, sys
from st_paragram.cli.main import main

texts = {}
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    texts[command] = shown.getvalue()
print(json.dumps({"texts": texts, "modules": sorted(sys.modules)}))
"""


def in_a_process(commands):
    process = [sys.executable, "-c", EVERY_HELP, json.dumps(commands)]
    return json.loads(subprocess.run(process, capture_output=True, text=True, check=True).stdout)


def test_help_of_every_command_says_what_it_does_and_imports_nothing_heavy():
    helped = in_a_process([*COMMANDS, "train bitext", "train paraphrase"])
    assert not {module.partition(".")[0] for module in helped["modules"]}.intersection(HEAVY)
    for command, text in helped["texts"].items():
        assert text.startswith(f"usage: st-paragram {command}") and text.count("\n") > 5, command


def test_the_list_of_commands_imports_none_of_them():
    seen = in_a_process([""])
    ours = {module for module in seen["modules"] if module.startswith("st_paragram.cli.")}
    assert ours == {"st_paragram.cli.main", "st_paragram.cli.overview"}
    assert not {"numpy", "pydantic", "importlib.metadata", "yaml"}.intersection(seen["modules"])
    assert TASKS in seen["texts"][""]
    for command, about in COMMANDS.items():
        assert seen["texts"][""].count(f"\n  {command:9} {about}\n") == 1


def test_every_command_has_its_file_and_its_parts():
    folder = Path(main.__code__.co_filename).parent
    of_families = {name: Path(find_spec(entry.package).origin).parent for name, (entry, _) in commands().items()}
    for command in COMMANDS:
        path = folder / f"{'import_model' if command == 'import' else command}.py"
        if command in of_families:
            path = of_families[command] / f"{command}_command.py"
        tree = ast.parse(path.read_text())
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        names |= {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets}
        assert {"DESCRIPTION", "EPILOG", "add_options", "run"} <= names, command


def test_without_a_command_the_tasks_are_shown_and_nothing_is_said_to_have_been_done(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.strip() == START


@pytest.mark.parametrize("command", [line.strip() for line in TASKS.splitlines() if line.startswith("    ")])
def test_the_commands_of_the_tasks_can_be_typed(command):
    words = shlex.split(command)
    assert words[0] == "st-paragram" and build_parser(words[1]).parse_args(words[1:]).command == words[1]


def test_the_version(capsys):
    assert main(["--version"]) == 0 and capsys.readouterr().out.startswith("st-paragram 0.")


@pytest.mark.parametrize("command", ["score", "train bgt"])
def test_a_description_is_filled_to_the_width_of_the_terminal(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    description = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert len(description) > 1 and max(map(len, description)) < 80


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("search i -k 2 where is it", {"source": "i", "k": 2, "query": ["where", "is", "it"]}),
        ("search -k 2 i a --threshold 0.5 b", {"source": "i", "threshold": 0.5, "query": ["a", "b"]}),
        ("search i -k 2 -- -q", {"query": ["-q"]}),
        ("search i -k 2", {"query": []}),
        ("embed a --model m b --normalize --output o c", {"files": ["a", "b", "c"], "model": "m"}),
        ("info a --check b", {"names": ["a", "b"], "check": True}),
        ("export m --dim 3 o", {"model": "m", "output": "o", "dim": 3}),
        ("push m --dry-run o/n", {"model": "m", "repository": "o/n"}),
    ],
)
def test_options_may_come_between_arguments(words, expected):
    found = vars(build_parser(words.split()[0]).parse_args(words.split()))
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evalute", "st-paragram: error: there is no command 'evalute'; did you mean evaluate?"),
        ("serach x --help", "there is no command 'serach'; did you mean search?"),
        ("zzz", "there is no command 'zzz'; `st-paragram --help` lists them"),
        ("train bitxt", "st-paragram train: error: there is no kind 'bitxt'; did you mean bitext?"),
        ("cache claer", "invalid choice: 'claer' (choose from"),
        ("search i -k 2 q --thresold 1", "there is no --thresold; did you mean --threshold?"),
    ],
)
def test_what_is_misspelt_is_named(words, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words.split())
    assert stopped.value.code == 2 and said in capsys.readouterr().err
