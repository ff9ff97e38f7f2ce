"""`st-paragram prepare`: parallel text in, a pair store out, and a table of what was kept and dropped."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.data.prepare_settings import PrepareSettings
    from st_paragram.data.text import TextSource
    from st_paragram.data.vocabulary import Vocabulary

_EPILOG = """\
A text is a tab-separated file of two columns, plain or compressed (gzip, xz, bzip2), `-` for standard input,
or a zip archive with one such member or with one member per language (OPUS, Moses format). English stands
first unless a prefix says otherwise.

  st-paragram prepare --lang es --text es-en:pairs.tsv --text Europarl.en-es.zip --output data/en-es.h5
  st-paragram prepare --lang de --moses news.en news.de --vocab-size 20000 --output data/en-de.h5
  st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser(
        "prepare",
        help="make a pair store of parallel text",
        description="Filter, deduplicate and shuffle parallel text, train a vocabulary, store encoded pairs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    texts = parser.add_argument_group("text")
    texts.add_argument("--lang", required=True, help="the other language, e.g. es; en for English paraphrases")
    texts.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="[LANG-LANG:]FILE",
        help="a text of two columns; repeatable",
    )
    texts.add_argument(
        "--moses",
        action="append",
        default=[],
        nargs=2,
        metavar=("EN", "XX"),
        help="a file per language; repeatable",
    )
    texts.add_argument("--drop-invalid", action="store_true", help="drop rows that are not UTF-8, do not stop there")
    store = parser.add_argument_group("store")
    store.add_argument("--output", type=Path, required=True, metavar="FILE.h5", help="the pair store to make")
    store.add_argument("--overwrite", action="store_true", help="replace an output that exists")
    store.add_argument("--seed", type=int, default=0, help="of the shuffle and the vocabulary (%(default)s)")
    store.add_argument("--workers", type=int, default=1, help="processes; the store is the same (%(default)s)")
    _add_filters(parser.add_argument_group("filters"))
    _add_vocabulary(parser.add_argument_group("vocabulary"))


def _add_filters(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--min-length",
        type=int,
        default=3,
        help="words a side needs (%(default)s); characters without spaces",
    )
    add("--max-length", type=int, default=100, help="words a side may have (%(default)s)")
    add("--max-characters", type=int, default=200, help="the same for a script without spaces (%(default)s)")
    add(
        "--length-on",
        choices=("both", "english"),
        default="both",
        help="sides whose length counts (%(default)s)",
    )


def _add_vocabulary(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--vocab", type=Path, metavar="FILE.model", help="use this sentencepiece model, train none")
    add(
        "--vocab-size",
        type=int,
        default=50_000,
        help="pieces to train; little text gives fewer (%(default)s)",
    )
    add("--character-coverage", type=float, help="default 0.9995, and 0.995 with Chinese or Japanese")
    add(
        "--sample-pairs",
        type=int,
        default=500_000,
        help="pairs to train it on, 4 KB of memory each (%(default)s)",
    )
    add("--max-sentence-bytes", type=int, default=4192, help="leave longer sentences out of it (%(default)s)")
    add("--vocab-threads", type=int, default=8, help="threads that train it; they shape it slightly (%(default)s)")
    add("--max-pieces", type=int, default=100, help="cut sentences at this many pieces (%(default)s)")
    add(
        "--segment",
        choices=("none", "jieba"),
        default="none",
        help="word segmentation of Chinese (%(default)s)",
    )
    add("--keep-case", action="store_true", help="do not lower-case the text")


def run(arguments: argparse.Namespace) -> int:
    """Make the store and print the table; returns the exit status.

    Raises:
        ParagramError: If the text, the settings or the output are refused.
    """
    from st_paragram.data.prepare import prepare

    settings = _settings(arguments)
    sources = _sources(arguments, settings.languages)
    report = prepare(sources, arguments.output, settings, _vocabulary(arguments, settings), arguments.overwrite)
    sys.stdout.write(f"{report.table()}\n{arguments.output}: {report.total.kept:,} pairs\n")
    return 0


def _settings(arguments: argparse.Namespace) -> PrepareSettings:
    from st_paragram.data.filters import LengthOn
    from st_paragram.data.prepare_settings import PrepareSettings
    from st_paragram.data.vocabulary import Segmentation

    return PrepareSettings(
        languages=("en", arguments.lang),
        lower_case=not arguments.keep_case,
        segmentation=Segmentation(arguments.segment),
        min_length=arguments.min_length,
        max_length=arguments.max_length,
        max_characters=arguments.max_characters,
        length_on=LengthOn(arguments.length_on),
        drop_invalid=arguments.drop_invalid,
        vocab_size=arguments.vocab_size,
        character_coverage=arguments.character_coverage,
        sample_pairs=arguments.sample_pairs,
        max_sentence_bytes=arguments.max_sentence_bytes,
        vocab_threads=arguments.vocab_threads,
        max_pieces=arguments.max_pieces,
        seed=arguments.seed,
        workers=arguments.workers,
    )


def _sources(arguments: argparse.Namespace, languages: tuple[str, str]) -> list[TextSource]:
    from st_paragram.data.text import moses_source, parse_source

    sources = [parse_source(spec, languages) for spec in arguments.text]
    sources += [moses_source(first, second, languages) for first, second in arguments.moses]
    if not sources:
        raise SettingsError("no text given; name at least one with --text or --moses")
    return sources


def _vocabulary(arguments: argparse.Namespace, settings: PrepareSettings) -> Vocabulary | None:
    from st_paragram.data.vocabulary import Vocabulary

    if arguments.vocab is None:
        return None
    try:
        model = arguments.vocab.read_bytes()
    except OSError as error:
        raise SettingsError(f"{arguments.vocab}: cannot be read ({error.strerror}); give a .model file") from error
    return Vocabulary(model, settings.lower_case, settings.segmentation)
