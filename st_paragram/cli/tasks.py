"""`st-paragram tasks`: rows of questions and answers, responses and inference out of public files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.errors import SettingsError
from st_paragram.settings import add_setting_options, given

DESCRIPTION = "Make rows for the training of dual encoders out of public files: LANG.tsv in the folder of a task."
EPILOG = """\
squad     JSON of SQuAD 1.1 or 2.0            ->  question TAB sentence of the answer TAB paragraph
faq       .tsv, .csv, .jsonl: question, answer ->  the same
dialogue  .jsonl of lists of turns, or a turn a line and blank lines between dialogues  ->  utterance TAB response
nli       .jsonl as of SNLI, .tsv as of XNLI   ->  label TAB premise TAB hypothesis

  st-paragram tasks --kind squad --lang tr train-v0.1.json --output qa
  st-paragram tasks --kind nli --lang en snli_1.0_train.jsonl --output nli
  st-paragram tasks --list                                                  # public sources and their licences
  st-paragram train muse --langs es --bitext data/en-es.h5 --qa qa --nli nli

Line files may be packed by gzip or xz. Rows with sentences of known test sets are dropped when a training reads them.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, for the command and for the script that does the same."""
    from st_paragram.preparation.muse.convert import KINDS
    from st_paragram.preparation.muse.rows import ConvertSettings

    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="the files to read, all of one kind and language")
    add("--kind", choices=KINDS, help="the kind of the files, see below")
    add("--lang", help="the language of the rows, e.g. es")
    add("--output", type=Path, metavar="FOLDER", help="the folder of a task, in which LANG.tsv is made")
    add("--overwrite", action="store_true", help="replace a LANG.tsv that exists")
    add("--list", action="store_true", help="show public sources, their licences and where they are, and end")
    add("--json", type=Path, metavar="FILE", help="write the numbers there, too (default: nowhere)")
    add_setting_options(parser, ConvertSettings)


def run(arguments: argparse.Namespace) -> int:
    """Make the rows and print the numbers, or show the sources; returns the exit status.

    Raises:
        ParagramError: A file, a setting or the output is refused.
    """
    from st_paragram.files import output_files, write_json
    from st_paragram.preparation.muse.catalogue import sources_table
    from st_paragram.preparation.muse.convert import convert
    from st_paragram.preparation.muse.rows import ConvertSettings

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
