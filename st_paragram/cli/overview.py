"""What `st-paragram` shows without a command: tasks with the command that does each; and all commands in groups."""

from __future__ import annotations

from collections.abc import Mapping

#: Task -> commands that do it, as they can be typed.
TASKS = {
    "turn sentences into vectors, compare pairs of sentences": (
        "st-paragram embed lines.txt --output lines.npy",
        "st-paragram score pairs.tsv --output scored.tsv",
    ),
    "search in your own sentences, in any language of the model": (
        "st-paragram index lines.txt --output lines.index",
        'st-paragram search lines.index "where is the station?"',
    ),
    "find translations among the sentences of two languages": (
        "st-paragram mine --source wiki.en --target wiki.es --output pairs.tsv",
    ),
    "score a parallel corpus, to drop what is not translated": (
        "st-paragram score corpus.tsv --output scored.tsv --background self --sort",
    ),
    "train a model for your language": ("st-paragram train bitext --lang es --data en-es.tsv",),
    "evaluate a model": ("st-paragram evaluate p-sp-es --hub --benchmarks sts",),
}
_GROUPS = {
    "use a model": ("embed", "score", "index", "search", "mine", "align", "generate"),
    "get and clean text": ("bitext", "download", "prepare", "dedupe", "pivot", "inspect"),
    "train and evaluate": ("train", "evaluate"),
    "look at, copy and share models": ("info", "get", "export", "import", "push"),
    "serve": ("serve", "demo"),
    "other": ("cache",),
}


def tasks() -> str:
    """The tasks, each with its commands below."""
    return "\n".join(line for task, commands in TASKS.items() for line in (task, *(f"    {each}" for each in commands)))


def start() -> str:
    """What is shown if no command is given."""
    every = "st-paragram --help            lists all commands\nst-paragram COMMAND --help    shows the options of one"
    first = "What would you like to do? The model p-sp-mini comes with st_paragram."
    return f"{first}\n\n{tasks()}\n\n{every}"


def grouped(commands: Mapping[str, str]) -> str:
    """All commands with a line on each, in groups; those that are in no group are among the last.

    Args:
        commands: What each command is for.
    """
    named = {name for names in _GROUPS.values() for name in names}
    others = [name for name in commands if name not in named]
    lines = []
    for title, names in _GROUPS.items():
        shown = [*names, *others] if title == "other" else names
        lines += [f"{title}:", *(f"  {name:9} {commands[name]}" for name in shown if name in commands), ""]
    last = "st-paragram --version shows the version, st-paragram COMMAND --help the options of a command."
    return "\n".join([*lines, last, ""])
