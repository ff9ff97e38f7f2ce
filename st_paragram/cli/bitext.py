"""`st-paragram bitext`: download, clean and prepare parallel text in one command."""

from __future__ import annotations

import argparse
from pathlib import Path

from st_paragram.cli.download import add_corpus_options
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
    "Download parallel text, clean it, and turn it into a pair store for `st-paragram train"
    " bitext`, by default data/en-LANG.h5."
)
EPILOG = """\
Without --corpus, the command uses the corpora that P-SP was trained on for the language, with at
most as many pairs from each as in the authors' scripts. For other languages, it uses all corpora in
the catalog that cover the language. Add your own texts with --text and --moses.

  st-paragram bitext --lang es
  st-paragram bitext --lang fr-es-de --temperature 2   # three languages: data/en-fr-es-de.h5
  st-paragram bitext --pair fr de                      # French and German: data/fr-de.h5
  st-paragram bitext --lang is --corpus OPUS:NLLB --corpus OPUS:TED2020 --output data/en-is.h5
  st-paragram bitext --lang de --no-download --moses news.en news.de --workers 4

If a run is interrupted for any reason, the same command resumes it where it stopped.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_language_options(parser, "languages other than English, e.g. es or fr-es-de")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE.h5",
        help="output pair store (default: data/en-LANG.h5, or the languages of --pair)",
    )
    group = parser.add_argument_group("download")
    add_corpus_options(group, "corpus to use instead of the default corpora; repeatable")
    group.add_argument(
        "--no-download", action="store_true", help="download nothing; use only --text and --moses"
    )
    add_text_options(parser)
    add_cleaning_options(parser, "`default`")
    add_store_options(parser)
    add_work_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Download, clean and prepare the text, and print the table of counts."""
    from st_paragram.runs.training_data import default_store_of
    from st_paragram.tools.corpora.resolve import corpora_for, language_pairs, text_source
    from st_paragram.tools.preparation.prepare import prepare

    languages = checked_languages(arguments)
    output = arguments.output or default_store_of(languages)
    check_store_name(output)
    settings = settings_from(arguments, languages, cleaning_from(arguments, "default"))
    vocabulary = vocabulary_from(arguments, settings)
    sources = sources_from(arguments, settings.languages)
    if arguments.no_download and not sources:
        raise SettingsError("no text: --no-download needs --text or --moses")
    if arguments.no_download and (arguments.corpus or arguments.mirror):
        raise SettingsError("--corpus and --mirror do not apply to --no-download; leave them out")
    if not arguments.no_download:
        from st_paragram.tools.corpora.download import download

        files = []
        for pair in arguments.pair or language_pairs(arguments.lang):
            files += corpora_for(tuple(pair), arguments.corpus, arguments.mirror)
        downloads = download(files, arguments.folder, arguments.parallel)
        sources = [*[text_source(fetched) for fetched in downloads], *sources]
    check_texts(arguments, sources)
    report = prepare(sources, output, settings, vocabulary=vocabulary, **work_from(arguments))
    write_report(report, output)
    return 0
