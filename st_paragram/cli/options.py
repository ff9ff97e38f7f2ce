"""Options shared by several commands, and checks of inputs before anything heavy is imported."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Protocol

from st_paragram.core.files import (
    STDIN,
    atomic,
    file_digest,
    folder_for_file,
    is_pipe,
    naming_full_disk,
)
from st_paragram.core.languages import both_sides, check_codes, codes_of_sides, joined_sides
from st_paragram.core.model_directory.configuration import CONFIG_FILE
from st_paragram.core.model_directory.find import (
    HUB_ID,
    LANGUAGE_MODELS,
    SHIPPED_MODELS,
    default_model,
    find,
)
from st_paragram.core.outputs import output_files
from st_paragram.core.text.streams import read_lines, unpacked_suffix
from st_paragram.core.text.tables import check_plain
from st_paragram.errors import SettingsError, TextError

#: Stands for standard output in place of an output file.
STDOUT = "-"
_STANDARD_OUTPUT = Path("standard output")  # its name in messages


class OptionGroup(Protocol):
    """A parser or a group of its options."""

    def add_argument(self, *names: str, **arguments: Any) -> Any: ...  # noqa: D102


#: Help of the argument MODEL.
MODEL = "model directory, name or hub id, here or as --model NAME"
# The hyphen before a region or a script in a code such as es-ES, es-419 or zh-Hant
_REGION = re.compile(r"(?<=[a-z])-(?=([A-Z]{2}|\d{3}|[A-Z][a-z]{3})\b)")
_COLUMN = "for a table (CSV, TSV, JSON lines or Parquet): name of the text column"


def add_model_option(parser: OptionGroup) -> None:
    """Add `--model`; `with_model_in_place` also accepts the first argument."""
    about = "model directory, name or hub id, here or as the first argument"
    default = "default: ./p-sp-* if there is exactly one, otherwise p-sp-mini"
    parser.add_argument("--model", metavar="NAME", help=f"{about} ({default})")


def with_model_in_place(words: list[str], help: str) -> list[str]:
    """Move the model to where a command expects it: to `--model NAME`, or to the argument MODEL.

    `help` is the help of the command. Every command takes the model in both ways.
    """
    if re.search(r"^  --model NAME", help, re.MULTILINE):
        is_named = any(word.partition("=")[0] == "--model" for word in words)
        if is_named or len(words) < 2 or not _names_model(words[0]):
            return words
        return ["--model", *words]
    if not re.search(r"^  MODEL", help, re.MULTILINE):
        return words
    models = []
    others = []
    remaining = iter(words)
    for word in remaining:
        option, _, value = word.partition("=")
        if option == "--model":
            models.append(value or next(remaining, word))
        else:
            others.append(word)
    return [*models, *others]


def _names_model(word: str) -> bool:
    """Whether a word names a model, not a file: a hub id has no file extension, and its owner is
    not a folder.
    """
    path = Path(word)
    on_hub = HUB_ID.fullmatch(word) and not (path.suffix[1:].isalpha() or path.parent.is_dir())
    is_included = word in SHIPPED_MODELS or word in LANGUAGE_MODELS
    return is_included or (path / CONFIG_FILE).is_file() or bool(on_hub)


def model_name(arguments: argparse.Namespace) -> str:
    """Return the chosen model, or the default model for `--lang` and `--pair`; it exists."""
    name: str = arguments.model or default_model(_languages_in(arguments))
    find(name)
    return name


def model_folder(arguments: argparse.Namespace) -> Path:
    """Return the directory of the chosen model, or of the default model."""
    return find(arguments.model or default_model(_languages_in(arguments)))


def _languages_in(arguments: argparse.Namespace) -> list[str]:
    """Return the languages of `--lang` and `--pair`; none for commands without these options."""
    codes = [getattr(arguments, "lang", None) or ""]
    for pair in getattr(arguments, "pair", None) or []:
        codes += [pair] if isinstance(pair, str) else pair
    return "-".join(codes).split("-")


def add_language_options(parser: argparse.ArgumentParser, lang: str) -> None:
    """Add `--lang`, whose help is `lang`, and `--pair`; `languages_from` reads them."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--lang", type=language_code, metavar="CODE[-CODE...]", help=lang)
    about = "two languages instead, with or without English, e.g. fr de; repeatable"
    group.add_argument(
        "--pair", action="append", nargs=2, type=language_code, metavar="CODE", help=about
    )


def language_code(codes: str) -> str:
    """Return codes of languages with underscores before regions: es_ES for es-ES."""
    return _REGION.sub("_", codes)


def languages_from(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the languages of both sides; several languages of a side are joined by hyphens."""
    if arguments.pair:
        return joined_sides(arguments.pair)
    return both_sides(arguments.lang)


def checked_languages(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the languages of both sides; refuse unknown codes."""
    languages = languages_from(arguments)
    check_codes(languages)
    return languages


def add_pair_option(parser: OptionGroup) -> None:
    """Add `--pair`, for texts and outputs whose format names languages."""
    about = "languages of both sides, e.g. en es; required for TMX"
    parser.add_argument("--pair", nargs=2, type=language_code, metavar="CODE", help=about)


def pair_from(arguments: argparse.Namespace) -> tuple[str, str] | None:
    """Return the languages of `--pair`, if given; refuse unknown codes."""
    if arguments.pair is None:
        return None
    first, second = arguments.pair
    check_codes((first, second))
    return first, second


def add_pairs_options(parser: OptionGroup) -> None:
    """Add `--columns`, `--output` and `--overwrite` of a command that reads and writes pairs."""
    columns = (
        "for a table (CSV, JSON lines, Parquet, or TSV with a header): columns of the two"
        " sentences, by name; numbers from 1 for a CSV or TSV without a header"
    )
    parser.add_argument(
        "--columns", action="append", default=[], nargs=2, metavar="NAME", help=columns
    )
    output = "output file, tab-separated or .tmx (default, or `-`: standard output)"
    parser.add_argument("--output", type=Path, metavar="FILE", help=output)
    parser.add_argument("--overwrite", action="store_true", help="replace existing outputs")


def name_of_languages(languages: tuple[str, str]) -> str:
    """Return the languages for the name of an output: es, or fr-de for pairs without English."""
    codes = codes_of_sides(languages)
    if languages[0] == "en" and len(codes) > 1:
        codes.remove("en")
    return "-".join(codes)


def add_no_checks(parser: OptionGroup) -> None:
    """Add `--no-checks`."""
    about = (
        "skip the checks for headers, equal sides, wrong languages and shifted rows in a sample of"
        " each text"
    )
    parser.add_argument("--no-checks", action="store_true", help=about)


def add_task_options(parser: OptionGroup) -> None:
    """Add a folder option for each task other than translation; `task_folders` reads them."""
    from st_paragram.families.muse.settings import COLUMNS

    for task, columns in COLUMNS.items():
        option = "--responses" if task == "response" else f"--{task}"
        about = f"folder of files LANG.tsv with rows `{columns}`"
        parser.add_argument(option, dest=f"task_{task}", type=Path, metavar="DIR", help=about)


def task_folders(arguments: argparse.Namespace) -> dict[str, Path]:
    """Return the given folders by task."""
    from st_paragram.families.muse.settings import COLUMNS

    folders = {task: getattr(arguments, f"task_{task}") for task in COLUMNS}
    return {task: folder for task, folder in folders.items() if folder}


def check_tasks(settings: Mapping[str, Any], folders: Mapping[str, Path]) -> None:
    """Refuse given settings of a task without a folder of its texts."""
    from st_paragram.families.muse.settings import COLUMNS

    for name, value in settings.items():
        task = name.partition("_")[0]
        if value and task in COLUMNS and task not in folders:
            raise SettingsError(
                f"{name} has no effect without texts of the task {task}; leave {name} out"
            )


def check_input(path: str) -> None:
    """Refuse a missing text before any work is done."""
    if path == STDIN:
        return
    if wrong := folder_for_file(path):
        raise TextError(f"{wrong}; name a file")
    file_digest(path)


def chosen_texts(
    arguments: argparse.Namespace, texts: Mapping[str, str | None], *ways: list[str]
) -> list[str]:
    """Return the texts of options, which exist; refuse other combinations than `ways`, and a
    missing `--output`.
    """
    named = [name for name, text in texts.items() if text]
    if arguments.unnamed or not arguments.output or named not in ways:
        seen = " and ".join([*arguments.unnamed, *named]) or "nothing"
        wanted = ", or ".join(" and ".join(f"{name} FILE" for name in way) for way in ways)
        raise SettingsError(f"{seen} given; give {wanted}, and --output FILE")
    chosen = [text for text in texts.values() if text]
    for text in chosen:
        check_input(text)
    return chosen


def add_columns_option(parser: OptionGroup, what: str = _COLUMN) -> None:
    """Add `--columns`."""
    note = "; numbers from 1 for a CSV or TSV without a header"
    parser.add_argument("--columns", nargs="+", metavar="NAME", help=what + note)


def columns_of(columns: Sequence[str] | None, texts: Sequence[str]) -> list[str | None]:
    """Return the column of each text, None for plain text; `columns` has one name for all texts, or
    one per text.
    """
    if not columns:
        for text in texts:
            check_plain(text)
            _warn_of_columns(text)
        return [None] * len(texts)
    if not texts:
        raise SettingsError("--columns needs a text with one sentence per line; leave it out")
    if len(columns) not in (1, len(texts)):
        seen = f"{len(columns)} columns for {len(texts)} text{'s' * (len(texts) != 1)}"
        raise SettingsError(f"{seen}; name one column for all texts, or one per text")
    return [*columns] if len(columns) == len(texts) else [columns[0]] * len(texts)


def _warn_of_columns(text: str) -> None:
    """Warn if the whole lines of a file with the name of a table would be read."""
    if unpacked_suffix(text) == ".tsv" and not is_pipe(text) and "\t" in next(read_lines(text), ""):
        say(f"WARNING: {text}: lines with tabs are read whole; for one column, give --columns 1")


def say(line: str) -> None:
    """Print a message on standard error: standard output is for results."""
    print(line, file=sys.stderr)


def is_standard_output(output: str | Path | None) -> bool:
    """Whether results go to standard output: no output was named, or `-`."""
    return output is None or str(output) == STDOUT


def output_name(output: str | Path | None) -> str:
    """Return the name of an output for messages."""
    return "standard output" if is_standard_output(output) else str(output)


@contextmanager
def output_opened(output: Path | None, overwrite: bool) -> Iterator[IO[str]]:
    """Open standard output in UTF-8 (no name, or `-`), or a file that takes its name when it is
    complete.
    """
    if output is None or is_standard_output(output):
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        with naming_full_disk(_STANDARD_OUTPUT):
            yield sys.stdout
            sys.stdout.flush()  # so that a closed pipe is noticed here, not at exit
        return
    with (
        output_files(output, overwrite=overwrite),
        atomic(output) as file,
        TextIOWrapper(file, encoding="utf-8", newline="\n") as handle,
    ):
        yield handle


@contextmanager
def standard_output() -> Iterator[IO[bytes]]:
    """Standard output, for bytes."""
    with naming_full_disk(_STANDARD_OUTPUT):
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
