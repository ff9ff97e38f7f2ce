"""The command itself: what it imports, how it answers, what it refuses, and what it shows first."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from st_paragram.cli.main import COMMANDS, main, parse
from st_paragram.cli.overview import START, TASKS

HEAVY = (
    "torch",
    "sentence_transformers",
    "transformers",
    "datasets",
    "faiss",
    "mteb",
    "matplotlib",
    "h5py",
    "scipy",
)
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
    mine = " ".join(helped["texts"]["mine"].split())
    assert (
        "--memory SIZE" in mine and "(default: 4G)" in mine and "--precision {float16,int8}" in mine
    )


def test_the_list_of_commands_imports_none_of_them():
    seen = in_a_process([""])
    ours = {module for module in seen["modules"] if module.startswith("st_paragram.cli.")}
    assert ours == {"st_paragram.cli.main", "st_paragram.cli.overview"}
    assert not {"numpy", "pydantic", "importlib.metadata", "yaml"}.intersection(seen["modules"])
    assert TASKS in seen["texts"][""]
    for command, about in COMMANDS.items():
        assert seen["texts"][""].count(f"\n  {command:9} {about}\n") == 1


def test_without_a_command_the_tasks_are_shown_and_can_be_typed(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.strip() == START
    for words in (shlex.split(line) for line in TASKS.splitlines() if line.startswith("    ")):
        assert words[0] == "st-paragram" and parse(words[1:]).command == words[1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("search i -k 2 where is it", {"source": "i", "k": 2, "query": ["where", "is", "it"]}),
        (
            "search -k 2 i a --threshold 0.5 b",
            {"source": "i", "threshold": 0.5, "query": ["a", "b"]},
        ),
        ("search i -k 2 -- -q", {"query": ["-q"]}),
        ("embed a --model m b --normalize --output o c", {"files": ["a", "b", "c"], "model": "m"}),
        ("train --lang tr --dim 3", {"kind": "bitext", "lang": "tr", "dim": 3}),
    ],
)
def test_options_may_come_between_arguments(words, expected):
    found = vars(parse(words.split()))
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "words",
    [
        "serve MODEL --port 0",
        "evaluate MODEL --translations p",
        "export MODEL out --dim 3",
        "info MODEL",
        "embed MODEL a b --output o",
        "search MODEL i q -k 2",
    ],
)
def test_a_model_is_named_by_a_word_or_by_an_option(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/st_paragram.json").touch()
    for name in ("p-sp-mini", "mine", "owner/name"):
        command, rest = words.split()[0], words.split()[2:]
        ways = [
            [command, name, *rest],
            [command, "--model", name, *rest],
            [command, *rest, f"--model={name}"],
        ]
        found = [vars(parse(way)) for way in ways]
        model = next(
            found[0][option] for option in ("model", "models", "names") if option in found[0]
        )
        assert found[0] == found[1] == found[2] and model in (name, [name])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evalute", "st-paragram: error: there is no command 'evalute'; did you mean evaluate?"),
        ("train bitxt", "st-paragram train: error: there is no kind 'bitxt'; did you mean bitext?"),
        ("search i -k 2 q --thresold 1", "there is no --thresold; did you mean --threshold?"),
        ("train paraphrase --lang es", "there is no --lang"),  # an option of its example
        ("train", "st-paragram train: error: the following arguments are required: KIND"),
        ("--v", "--v is not a command; name a command before its options"),
        ("--model m embed a", "--model is not a command"),
        ("--", "-- is not a command"),
    ],
)
def test_what_is_misspelt_is_named(words, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words.split())
    assert stopped.value.code == 2 and said in capsys.readouterr().err
