"""What README.md and docs/ tell readers to type: Python runs, commands are such as exist, and the quick ones run, too.

The blocks of a page are taken from its top to its end, Python in one namespace, in an empty folder with small files
under the names that the page uses (`support.doc_folder`). `<!-- not run: REASON -->` before a block leaves it out; its
commands are still read by the parsers, and the modules that it imports looked for.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import shlex
from itertools import pairwise

import matplotlib as mpl
import pytest
from support.doc_commands import mention_problem, problem
from support.doc_folder import PAIRS, copy_what_is_named, make_folder
from support.doc_pages import PAGES, ROOT, Block, assert_alike, blocks

from st_paragram.cli.main import build_parser, main
from st_paragram.learning.training import training_data

#: Commands that take milliseconds on small files.
RUN = {"align", "dedupe", "embed", "export", "generate", "get", "index", "info", "mine", "score", "search"}
#: Commands that run, too, on pages of recipes, whose text is small.
RUN_IN_RECIPES = RUN | {"prepare", "train"}
#: Options of `evaluate` on small files; its benchmarks need data that are not there.
OWN_DATA = {"--translations", "--graded", "--queries"}
#: Pages whose Python has a test of its own.
TESTED_ELSEWHERE = {"integrations.md": "test_integrations.py"}
LANGUAGES = {"python", "shell", "text", "yaml", "json", "sql", "javascript", "toml", "ini", "diff", "bibtex", "html"}
#: Blocks that cannot be run here, by page: a new one is entered with a thought.
NOT_RUN = {
    "docs/data.md": 3,
    "docs/evaluation.md": 1,
    "docs/many_machines.md": 1,
    "docs/serving.md": 5,
    "docs/training.md": 1,
    "docs/muse.md": 5,
}

#: Packages of the extra `examples` that development does without.
LARGE = ("lancedb",)

MENTION = re.compile(r"(?<!`)`((?:st-paragram|python|make|pip) [^`]+)`(?!`)")


def ids(page):
    return page.relative_to(ROOT).as_posix()


def missing_modules(text: str) -> list[str]:
    """Modules that a block imports and that are not there, though their package is."""
    parts = [part for part in ast.walk(ast.parse(text)) if isinstance(part, ast.Import | ast.ImportFrom)]
    modules = [name for part in parts for name in (getattr(part, "module", None), *(one.name for one in part.names))]
    find = importlib.util.find_spec
    return [name for name in modules if name and "." in name and find(name.partition(".")[0]) and not find(name)]


def needs_more(block: Block) -> bool:
    """Whether a block imports one of the large packages that the extra `dev` leaves out, and that is not there."""
    return any(f"import {name}" in block.text and not importlib.util.find_spec(name) for name in LARGE)


def names_in(block: Block) -> str:
    """The text of a block in which names of files are looked for: scripts are not run, and need none."""
    commands = block.commands() if block.language == "shell" else []
    ours = "\n".join(" ".join(words) for words in commands if words[0] == "st-paragram")
    return block.text if block.language == "python" else ours


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    with contextlib.redirect_stdout(io.StringIO()):
        return make_folder(tmp_path_factory.mktemp("documentation"))


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(training_data, "BUILT_IN_PAIRS", PAIRS)
    mpl.use("agg")


def run_python(block: Block, names: dict[str, object]) -> None:
    """Run a block; lines above it are filled up, so that errors name the page's own lines."""
    if block.not_run:
        assert not missing_modules(block.text), block.where
    else:
        exec(compile("\n" * (block.line - 1) + block.text, str(block.page), "exec"), names)


def is_output(block: Block, after: Block | None) -> bool:
    """Whether a block is what the one right above it prints."""
    close = 3  # the end of the fence, an empty line, the next fence
    return bool(after) and after.language == "text" and not block.not_run and after.line - block.end == close


def run_command(words: list[str], where: str, capsys) -> None:
    """Run a quick command as `st-paragram` would; what stands there from an earlier one is replaced."""
    given = build_parser(words[1]).parse_args(words[1:])
    changes = any(getattr(given, name, None) for name in ("add_to", "delete_from", "compact"))
    if hasattr(given, "overwrite") and not changes:
        words = [*words, "--overwrite"]
    status = main(words[1:])
    assert status == 0, f"{where}: {' '.join(words)}: {capsys.readouterr().err}"


SLOW = ("five_minutes.md", "many_machines.md")  # one trains a model, the other starts processes


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else [], id=ids(page)) for page in PAGES],
)
def test_a_page_runs_from_its_top_to_its_end(page, prepared, tmp_path, monkeypatch, capsys):
    found = blocks(page)
    copy_what_is_named(prepared, tmp_path, "\n".join(map(names_in, found)))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    run = RUN_IN_RECIPES if page.parent.name == "recipes" else RUN
    for block, after in pairwise([*found, None]):
        if block.language == "python" and page.name not in TESTED_ELSEWHERE and not needs_more(block):
            capsys.readouterr()
            run_python(block, names)
            if is_output(block, after):
                assert_alike(capsys.readouterr().out, after)
        elif (
            block.language == "shell"
            and not block.not_run
            and "commands" not in page.parts
            and page.name != "commands.md"
        ):
            for words in block.commands():
                if words[0] == "st-paragram" and (words[1] in run or OWN_DATA.intersection(words)):
                    run_command(words, block.where, capsys)


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_of_a_page_exist_with_their_options(page, prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    found = blocks(page)
    assert {block.language for block in found} <= LANGUAGES
    commands = [(block.where, words) for block in found if block.language == "shell" for words in block.commands()]
    wrong = [f"{where}: {' '.join(words)}: {said}" for where, words in commands if (said := problem(words))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_within_sentences_exist_with_their_options(page, prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    wrong = []
    for mention in MENTION.findall(page.read_text(encoding="utf-8")):
        said = mention_problem(shlex.split(mention))
        wrong += [f"{page.name}: `{mention}`: {said}"] if said else []
    assert not wrong, "\n".join(wrong)


def test_few_blocks_are_left_out():
    left_out = {}
    for page in PAGES:
        count = sum(bool(block.not_run) for block in blocks(page))
        left_out |= {ids(page): count} if count else {}
    assert left_out == NOT_RUN
