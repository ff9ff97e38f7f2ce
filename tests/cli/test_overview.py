"""What `st-paragram` shows without a command, the commands in groups, and guesses for misspelt ones."""

from __future__ import annotations

import shlex

import pytest

from st_paragram.cli.main import COMMANDS, build_parser, main
from st_paragram.cli.overview import TASKS, grouped, start


def test_without_a_command_six_tasks_are_shown_and_nothing_is_said_to_have_been_done(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.strip() == start()
    assert len(TASKS) == 6 and "st-paragram --help  " in shown.err


@pytest.mark.parametrize("command", [each for commands in TASKS.values() for each in commands])
def test_the_commands_of_the_tasks_can_be_typed(command):
    words = shlex.split(command)
    assert words[0] == "st-paragram" and build_parser(words[1]).parse_args(words[1:]).command == words[1]


def test_every_command_is_listed_once_in_a_group():
    lines = grouped(COMMANDS | {"newest": "do something new"}).splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == sorted([*COMMANDS, "newest"])
    assert lines.index("  newest    do something new") > lines.index("other:")
    assert not {"other:"} & set(lines[: lines.index("use a model:")])


def test_help_shows_tasks_and_commands(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 0 and grouped(COMMANDS) in shown and all(task in shown for task in TASKS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evalute", "st-paragram: error: there is no command 'evalute'; did you mean evaluate?"),
        ("serach x --help", "there is no command 'serach'; did you mean search?"),
        ("zzz", "there is no command 'zzz'; `st-paragram --help` lists them"),
        ("train bitxt", "st-paragram train: error: there is no kind 'bitxt'; did you mean bitext?"),
        ("cache claer", "invalid choice: 'claer' (choose from"),
    ],
)
def test_a_misspelt_command_is_guessed(words, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words.split())
    assert stopped.value.code == 2 and said in capsys.readouterr().err
