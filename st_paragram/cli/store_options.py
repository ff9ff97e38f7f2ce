"""Options shared by all commands that make a pair store: texts, filters, store and work."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.cli.options import add_no_checks
from st_paragram.core.settings import add_setting_options, check_used, given
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
    from st_paragram.tools.cleaning.config import Cleaning
    from st_paragram.tools.preparation.report import PrepareReport
    from st_paragram.tools.preparation.settings import PrepareSettings

_OF_THE_VOCABULARY = (
    "vocab_size",
    "character_coverage",
    "sample_pairs",
    "max_sentence_bytes",
    "vocab_threads",
)


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add options of the store and its vocabulary."""
    from st_paragram.tools.preparation.settings import PrepareSettings

    group = parser.add_argument_group("store")
    group.add_argument("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(group, PrepareSettings, leave_out=_OF_THE_VOCABULARY)
    group = parser.add_argument_group("vocabulary")
    vocabulary = "sentencepiece model to use instead of training one"
    group.add_argument("--vocab", type=Path, metavar="FILE.model", help=vocabulary)
    add_setting_options(group, PrepareSettings, only=_OF_THE_VOCABULARY)


def check_store_name(output: Path) -> None:
    """Refuse a name of a pair store by which `train` would read it as text."""
    if output.suffix not in ("", ".h5", ".hdf5"):
        raise SettingsError(f"{output}: a pair store ends in .h5; name it {output.stem}.h5")


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Add options for how the work is done; they do not change the store."""
    add = parser.add_argument_group("work").add_argument
    work = "folder for a folder of intermediate files (default: hidden, next to the output)"
    add("--work", type=Path, metavar="DIR", help=work)
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="number of processes for cleaning (default: %(default)s)",
    )
    add("--rejects", type=Path, metavar="DIR", help="folder for dropped rows, one file per reason")
    text = "folder for the texts in store order, a.txt and b.txt, for a teacher to embed"
    add("--keep-text", type=Path, metavar="DIR", help=text)
    add_no_checks(parser)


def settings_from(
    arguments: argparse.Namespace, languages: tuple[str, str], cleaning: Cleaning
) -> PrepareSettings:
    """Return the settings that the options describe."""
    from st_paragram.tools.preparation.settings import PrepareSettings

    values = given(arguments, PrepareSettings)
    settings = PrepareSettings(languages, cleaning, **values)
    check_used(settings, values)
    if arguments.vocab:
        for name in _OF_THE_VOCABULARY:
            if name in values:
                raise SettingsError(f"{name} has no effect with --vocab; leave {name} out")
    return settings


def vocabulary_from(
    arguments: argparse.Namespace, settings: PrepareSettings
) -> SentencePieceTokenizer | None:
    """Return the vocabulary of `--vocab`, if given."""
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer

    if arguments.vocab is None:
        return None
    try:
        return SentencePieceTokenizer(
            arguments.vocab.read_bytes(), settings.lower_case, settings.segmentation
        )
    except OSError as error:
        raise SettingsError(
            f"{arguments.vocab}: cannot be read ({error.strerror}); give a .model file"
        ) from error
    except SettingsError as error:
        raise SettingsError(f"{arguments.vocab}: {error}") from error


def work_from(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return arguments of `prepare` for how the work is done."""
    names = ("overwrite", "work", "workers", "rejects", "keep_text")
    return {name: getattr(arguments, name) for name in names}


def check_texts(arguments: argparse.Namespace, sources: Sequence[TextSource]) -> None:
    """Warn of likely mistakes in texts, unless `--no-checks` is given."""
    from st_paragram.tools.suspicions import warn_of_suspicions

    if not arguments.no_checks:
        warn_of_suspicions(sources)


def write_report(report: PrepareReport, output: Path) -> None:
    """Print how many rows were read, dropped and kept."""
    sys.stdout.write(f"{report.table()}\n{output}: {report.total.kept:,} pairs\n")


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """Add options that name texts."""
    add = parser.add_argument_group("text").add_argument
    text = (
        "two-column text; the prefix is needed unless the columns are English and --lang;"
        " repeatable"
    )
    add("--text", action="append", default=[], metavar="[LANG-LANG:]FILE", help=text)
    columns = (
        "for tables (CSV, JSON lines, Parquet, or TSV with a header): columns of the two languages,"
        " by name; numbers from 1 for a CSV or TSV without a header; once for all texts, or once"
        " per --text and then per --moses, where each file has one of the columns"
    )
    add("--columns", action="append", default=[], nargs=2, metavar="NAME", help=columns)
    moses = "text in two files, one per language; repeatable"
    add("--moses", action="append", default=[], nargs=2, metavar=("EN", "XX"), help=moses)
    add(
        "--cap",
        type=int,
        metavar="N",
        help="maximum pairs per text, sampled at random (default: all)",
    )


def add_cleaning_options(parser: argparse.ArgumentParser, default: str) -> None:
    """Add options that choose filters; `default` describes the filters that apply otherwise."""
    from st_paragram.tools.cleaning.shape import Length

    group = parser.add_argument_group("filters")
    about = f"list of filters: `default`, `paper`, `paranmt`, or your own file (default: {default})"
    group.add_argument("--cleaning", metavar="NAME|FILE.yaml", help=about)
    add_setting_options(group, Length)


def sources_from(
    arguments: argparse.Namespace, languages: tuple[str, str], further: int = 0
) -> list[TextSource]:
    """Return the named texts; filters read `further` columns after the two texts."""
    from st_paragram.core.text.parallel import TextSource, parse_source, with_columns

    sources = [parse_source(spec, languages) for spec in arguments.text]
    sources += [TextSource((first, second), languages) for first, second in arguments.moses]
    sources = with_columns(sources, arguments.columns)
    return [
        dataclasses.replace(source, cap=arguments.cap, further_columns=further)
        for source in sources
    ]


def cleaning_from(arguments: argparse.Namespace, otherwise: str | None = None) -> Cleaning:
    """Return the filters that the options choose, by default the list `otherwise`.

    None: filter only by length.
    """
    from st_paragram.tools.cleaning.config import named_cleaning, only_length
    from st_paragram.tools.cleaning.shape import Length

    lengths = given(arguments, Length)
    chosen = arguments.cleaning or (None if lengths else otherwise)
    if chosen is None:
        return only_length(**lengths)
    if lengths:
        flags = ", ".join(["--" + name.replace("_", "-") for name in lengths])
        raise SettingsError(
            f"{flags} cannot be combined with --cleaning {chosen};"
            " set the lengths in the list of filters"
        )
    return named_cleaning(chosen)
