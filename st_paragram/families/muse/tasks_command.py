"""`st-paragram tasks`: rows of questions and answers, responses and inference out of public files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError

DESCRIPTION = (
    "Turn public files of questions and answers, dialogues or inference into what `st-paragram train muse` reads: a "
    "file LANG.tsv in the folder of a task."
)
EPILOG = """\
The kinds of files are:

- squad: JSON of SQuAD 1.1 or 2.0 becomes rows `question TAB sentence with the answer TAB paragraph`;
- faq: .tsv, .csv or .jsonl with a question and an answer becomes the same rows;
- dialogue: .jsonl with lists of turns, or text with a turn on each line and a blank line between dialogues, becomes
rows `utterance TAB response`;
- nli: .jsonl like that of SNLI, or .tsv like that of XNLI, becomes rows `label TAB premise TAB hypothesis`.

Examples:

  st-paragram tasks --kind squad --lang tr train-v0.1.json --output qa
  st-paragram tasks --kind nli --lang en snli_1.0_train.jsonl --output nli
  st-paragram tasks --list                                                  # public sources and their licences
  st-paragram train muse --langs es --bitext data/en-es.h5 --qa qa --nli nli

Files that are read line by line may be compressed by gzip or xz. Rows with sentences of known test sets are not dropped
here, but when a training reads the files.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, for the command and for the script that does the same."""
    from st_paragram.families.muse.public_files.convert import KINDS
    from st_paragram.families.muse.public_files.rows import ConvertSettings

    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="input files, all of one kind and language")
    add("--kind", choices=KINDS, help="kind of the files, as listed below")
    add("--lang", help="language of the rows, e.g. es")
    add("--output", type=Path, metavar="FOLDER", help="task folder for the output LANG.tsv")
    add("--overwrite", action="store_true", help="replace an existing LANG.tsv")
    add("--list", action="store_true", help="only list public sources with their licences and addresses")
    add("--json", type=Path, metavar="FILE", help="also write the numbers to this file (default: nowhere)")
    add_setting_options(parser, ConvertSettings)


def run(arguments: argparse.Namespace) -> int:
    """Make the rows and print the numbers, or show the sources; returns the exit status.

    Raises:
        ParagramError: A file, a setting or the output is refused.
    """
    from st_paragram.core.files import output_files, write_json
    from st_paragram.families.muse.public_files.catalogue import sources_table
    from st_paragram.families.muse.public_files.convert import convert
    from st_paragram.families.muse.public_files.rows import ConvertSettings

    if arguments.list:
        sys.stdout.write(f"{sources_table()}\n")
        return 0
    needed = {"--kind": arguments.kind, "--lang": arguments.lang, "--output": arguments.output, "FILE": arguments.files}
    if missing := [name for name, value in needed.items() if not value]:
        raise SettingsError(f"{', '.join(missing)} missing; give them, or --list for public sources")
    settings = ConvertSettings(**given(arguments, ConvertSettings))
    with output_files(arguments.json, overwrite=True):
        output, report = convert(
            arguments.kind, arguments.lang, arguments.files, arguments.output, settings, arguments.overwrite
        )
        if arguments.json:
            write_json(arguments.json, report.as_json())
    sys.stdout.write(f"{report.table()}\n{output}\n")
    return 0
