"""`st-paragram download`: download parallel text and test sets by name."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.languages import check_codes, codes_of_sides, joined_sides
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.corpora.catalogue import CorpusFile

DESCRIPTION = (
    "Download parallel corpora and test sets by name. Interrupted downloads are resumed, all files"
    " are checked, and a manifest records what was downloaded."
)
EPILOG = """\
Without --corpus, the command downloads the corpora that P-SP was trained on for the language. For
other languages, it downloads all corpora in the catalog that cover the language.

  st-paragram download --lang es
  st-paragram download --lang fr-es-de --list
  st-paragram download --lang de --corpus Europarl --corpus OPUS:NLLB --corpus OPUS:TED2020@v1
  st-paragram download --sets tatoeba --lang es-tr --folder data/eval
  st-paragram download --sets sts --folder data/eval

--sets sts also writes the sets of STS 2012-2017 and the STS Benchmark as tables, FOLDER/sts2012 to
FOLDER/stsb, and checks them. STS 2013 SMT is missing: only the Linguistic Data Consortium may
distribute it.

Complete files are not downloaded again. Each corpus has its own license, which is shown and
recorded in FOLDER/manifest.json. You are responsible for respecting it.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    lang = "languages to download, each paired with English, e.g. es or fr-es-de"
    add("--lang", metavar="CODE[-CODE...]", help=lang)
    pair = "two languages instead, with or without English, e.g. fr de; repeatable"
    add("--pair", action="append", default=[], nargs=2, metavar="CODE", help=pair)
    add_corpus_options(parser, "corpus to download instead of the default corpora; repeatable")
    add(
        "--sets",
        action="append",
        default=[],
        metavar="NAME",
        help="test set to download: tatoeba, bucc or sts; repeatable",
    )
    add("--list", action="store_true", help="only show what would be downloaded")


def add_corpus_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, corpus: str
) -> None:
    """Add the options of all commands that download corpora."""
    add = parser.add_argument
    add("--corpus", action="append", default=[], metavar="NAME[@VERSION]", help=corpus)
    add(
        "--mirror",
        metavar="URL",
        help="mirror with the same file paths (default: each corpus's server)",
    )
    folder = "download folder (default: %(default)s)"
    add("--folder", type=Path, default=Path("data/raw"), metavar="DIR", help=folder)
    add(
        "--parallel",
        type=int,
        default=4,
        metavar="N",
        help="simultaneous downloads (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Download the files, or show what would be downloaded."""
    from st_paragram.tools.corpora.resolve import corpora_for, language_pairs, set_files

    pairs = [(first, second) for first, second in arguments.pair]
    if arguments.lang:
        pairs += language_pairs(arguments.lang)
    if not pairs and (arguments.corpus or not arguments.sets):
        raise SettingsError(
            "no languages; name them with --lang or --pair, or test sets with --sets"
        )
    codes: list[str] = []
    if pairs:
        check_codes(joined_sides(pairs))
        codes = codes_of_sides(joined_sides(pairs))
    files: list[CorpusFile] = []
    for name in dict.fromkeys(arguments.sets):
        files += set_files(name, codes, arguments.mirror)
    if arguments.corpus or not arguments.sets:
        for pair in pairs:
            files += corpora_for(pair, arguments.corpus, arguments.mirror)
    sys.stdout.write(f"{table(files)}\n")
    if not arguments.list:
        from st_paragram.tools.corpora.download import download

        fetched = download(files, arguments.folder, arguments.parallel)
        fresh = sum(file.fresh for file in fetched)
        sys.stdout.write(
            f"{arguments.folder}: {fresh} files downloaded, {len(fetched) - fresh} already there\n"
        )
        if "sts" in arguments.sets:
            from st_paragram.tools.evaluation.sts_archives import write_sets

            written = write_sets(arguments.folder, arguments.folder)
            sys.stdout.write(f"{arguments.folder}: {len(written)} sets of STS written\n")
    return 0


def table(files: list[CorpusFile]) -> str:
    """Return a list of the files: the addresses of each corpus, its license and its citation."""
    corpora: dict[tuple[str, str], list[CorpusFile]] = {}
    for file in files:
        corpora.setdefault((file.name, file.entry.version), []).append(file)
    lines = []
    for (name, version), corpus_files in sorted(corpora.items()):
        entry = corpus_files[0].entry
        cap = f", limited to {entry.cap:,} pairs per language" if entry.cap else ""
        lines.append(f"{name} {version}{cap}")
        lines += [f"  {file.url}" for file in corpus_files]
        lines.append(f"  license: {entry.license}")
        lines.append(f"  cite: {entry.citation}")
        if entry.note:
            lines.append(f"  note: {entry.note}")
    return "\n".join(lines)
