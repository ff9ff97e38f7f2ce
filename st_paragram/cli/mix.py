"""`st-paragram mix`: several parallel texts in, a weight for each out, found by short trainings."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import add_no_checks
from st_paragram.tools.options.preparation import check_texts
from st_paragram.tools.options.text import add_cleaning_options, cleaning_from

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.mixing.run import MixRun
    from st_paragram.tools.corpora.mixture import MixtureSource

DESCRIPTION = (
    "Find out which parallel texts help. Models are trained briefly on samples of all texts, and on all "
    "except one, and are scored on development sets. A text that hurts gets a lower weight, or 0. The "
    "result is a table, and a list of texts with weights for `st-paragram prepare --sources`."
)
EPILOG = """\
  st-paragram mix talks.tsv.xz manual.tsv forum.tsv --lang es --dev stsb-dev.tsv --output mixture.yaml
  st-paragram mix en-es:talks.tsv en-de:manual.tsv en-de:forum.tsv --lang de-es --output mixture.yaml
  st-paragram mix --sources texts.yaml --dev stsb-dev.tsv --seeds 5 --work mix.work --output mixture.yaml
  st-paragram prepare --lang es --sources mixture.yaml --output data/en-es.h5

A list of texts (--sources) is YAML: a name for each text, with its path, its languages and what `prepare --sources`
takes besides, such as columns, cap and group; paths are relative to the folder of the list.

Never give a test set to --dev or --dev-bitext: known test sets are refused. After Ctrl-C the same command resumes.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.mixing.settings import MixSettings

    add = parser.add_argument_group("text").add_argument
    add(
        "texts",
        nargs="*",
        metavar="[LANG-LANG:]FILE",
        help="two-column texts, with a prefix unless the columns are English and --lang",
    )
    add("--lang", metavar="CODE[-CODE...]", help="language of the texts other than English, or several; en for English")
    add(
        "--columns",
        action="append",
        default=[],
        nargs=2,
        metavar="NAME",
        help="for tables (CSV, JSON lines, Parquet, or TSV with a header): columns of the two languages; once "
        "for all texts, or once per text",
    )
    add("--sources", action="append", default=[], metavar="FILE.yaml", help="list of texts, see below; repeatable")
    add = parser.add_argument_group("development sets").add_argument
    add(
        "--dev",
        type=Path,
        action="append",
        default=[],
        metavar="FILE.tsv",
        help="graded pairs, rows `grade TAB sentence TAB sentence`; repeatable",
    )
    add(
        "--dev-bitext",
        action="append",
        default=[],
        metavar="[LANG-LANG:]FILE",
        help="translations to find; repeatable (default: pairs held out from the texts, for each language)",
    )
    add = parser.add_argument_group("output").add_argument
    add("--output", type=Path, required=True, metavar="FILE.yaml", help="output list of texts with weights")
    add("--json", type=Path, metavar="FILE", help="file for all figures")
    add("--overwrite", action="store_true", help="replace existing outputs")
    add("--work", type=Path, metavar="DIR", help="folder for samples and training results, for later runs")
    group = parser.add_argument_group("search")
    add_setting_options(group, MixSettings)
    group.add_argument(
        "--temperatures",
        type=float,
        nargs="+",
        default=[],
        metavar="T",
        help="temperatures of `st-paragram prepare` to try on the mixture (default: none)",
    )
    add_cleaning_options(parser, "length alone")
    add_no_checks(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search, write the mixture and print the table; returns the exit status.

    Raises:
        ParagramError: The texts, the settings or the outputs are refused.
    """
    from st_paragram.mixing.run import mix

    asked = _run_from(arguments)
    check_texts(arguments, [each.source for each in asked.sources])
    from st_paragram.mixing.report import notes, table

    found = mix(asked)
    balance = f" --temperature {found.temperature:g}" if found.temperature != 1 else ""
    command = f"st-paragram prepare --lang {asked.languages[1]} --sources {asked.output}{balance} --output FILE.h5"
    sys.stdout.write(f"{table(found)}\n\n{notes(found, asked.settings)}\n{asked.output}: for `{command}`\n")
    return 0


def _run_from(arguments: argparse.Namespace) -> MixRun:
    from st_paragram.mixing.run import MixRun
    from st_paragram.mixing.settings import MixSettings
    from st_paragram.tools.corpora.mixture import read_mixture
    from st_paragram.tools.stages.work import Work

    sources = _texts(arguments)
    sources += [each.weighted(1.0) for path in arguments.sources for each in read_mixture(path)]
    asked = MixRun(
        _named(sources),
        arguments.output,
        MixSettings(**given(arguments, MixSettings)),
        cleaning_from(arguments),
        arguments.dev,
        temperatures=arguments.temperatures,
        json=arguments.json,
        overwrite=arguments.overwrite,
        work=Work(arguments.work, arguments.work is not None),
    )
    return dataclasses.replace(asked, translations=_parsed(arguments.dev_bitext, asked.languages[1]))


def _texts(arguments: argparse.Namespace) -> list[MixtureSource]:
    """The texts that are named as arguments; the name of each is that of its file."""
    from st_paragram.core.text.parallel import with_columns
    from st_paragram.tools.corpora.mixture import MixtureSource

    if arguments.texts and arguments.lang is None:
        raise SettingsError(f"no language for {arguments.texts[0]}; add --lang, e.g. --lang es")
    if arguments.columns and not arguments.texts:
        raise SettingsError("--columns is given, and no text as an argument; write columns into the list of texts")
    sources = with_columns(_parsed(arguments.texts, arguments.lang), arguments.columns)
    names = [Path(source.paths[0]).name.partition(".")[0] for source in sources]
    return [MixtureSource(name, source, group=name) for name, source in zip(names, sources, strict=True)]


def _parsed(texts: list[str], languages: str) -> list[TextSource]:
    from st_paragram.core.text.parallel import parse_source

    return [parse_source(text, ("en", languages)) for text in texts]


def _named(sources: list[MixtureSource]) -> list[MixtureSource]:
    """Sources of equal names get their languages into the name.

    Raises:
        SettingsError: There still are equal names.
    """
    equal = Counter(each.name for each in sources)
    names = [f"{each.name}.{'-'.join(each.source.pair)}" if equal[each.name] > 1 else each.name for each in sources]
    if again := [name for name, count in Counter(names).items() if count > 1]:
        raise SettingsError(f"two sources are named {again[0]}; name them in a list of texts (--sources)")
    return [
        dataclasses.replace(each, name=name, group=name if each.group == each.name else each.group)
        for name, each in zip(names, sources, strict=True)
    ]
