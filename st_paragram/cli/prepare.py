"""`st-paragram prepare`: turn parallel text into a pair store, and print the counts."""

from __future__ import annotations

import argparse
from pathlib import Path

from st_paragram.cli.options import add_language_options, checked_languages
from st_paragram.cli.store_options import (
    add_cleaning_options,
    add_store_options,
    add_text_options,
    add_work_options,
    check_store_name,
    check_texts,
    cleaning_from,
    settings_from,
    sources_from,
    vocabulary_from,
    work_from,
    write_report,
)
from st_paragram.errors import SettingsError

DESCRIPTION = (
    "Turn parallel text into a pair store, the file that `st-paragram train` reads. The pairs are"
    " filtered, deduplicated and shuffled. Then a vocabulary is trained, and the pairs are stored"
    " as token ids."
)
EPILOG = """\
A text is a tab-separated file of two columns, plain or compressed (gzip, xz, bzip2), or `-` for
standard input. It may also be a zip archive with one such file, or with one file per language (the
Moses format of OPUS). English is the first column unless a prefix like `es-en:` says otherwise. For
a table (CSV, JSON lines, Parquet, or TSV with a header), --columns names the two columns. For
several languages in one store, give --lang fr-es-de and put a prefix before each text. --pair names
two languages of which none needs to be English.

  st-paragram prepare --lang es --text es-en:pairs.tsv --text Europarl.en-es.zip \\
      --output data/en-es.h5
  st-paragram prepare --lang es --text pairs.csv --columns english spanish \\
      --output data/en-es.h5
  st-paragram prepare --lang de --moses news.en news.de --cleaning default --rejects dropped \\
      --output data/en-de.h5
  st-paragram prepare --lang en --text para-nmt-50m.txt --cleaning paranmt \\
      --output data/en-en.h5
  st-paragram prepare --lang fr-es --text en-fr:a.tsv --text en-es:b.tsv --temperature 2 \\
      --output data/en-fr-es.h5
  st-paragram prepare --pair fr de --text pairs.tsv --output data/fr-de.h5

Without --cleaning, only rows that are too short, too long or repeated are dropped.
`--cleaning default` selects our list of filters, `--cleaning paper` the paper's list, and
`--cleaning FILE.yaml` your own. `--cleaning paranmt` is for rows
`sentence TAB paraphrase TAB score`.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_language_options(
        parser, "languages other than English, e.g. es or fr-es; en for English paraphrases"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE.h5", help="output pair store"
    )
    add_text_options(parser)
    add_cleaning_options(parser, "length only")
    add_store_options(parser)
    add_work_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make the store and print the table of counts."""
    from st_paragram.tools.preparation.prepare import prepare

    settings = settings_from(arguments, checked_languages(arguments), cleaning_from(arguments))
    sources = sources_from(arguments, settings.languages, settings.cleaning.further_columns)
    check_store_name(arguments.output)
    if not sources:
        raise SettingsError("no text; give at least one with --text or --moses")
    vocabulary = vocabulary_from(arguments, settings)
    check_texts(arguments, sources)
    report = prepare(
        sources, arguments.output, settings, vocabulary=vocabulary, **work_from(arguments)
    )
    write_report(report, arguments.output)
    return 0
