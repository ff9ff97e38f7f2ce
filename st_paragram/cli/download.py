"""`st-paragram download`: fetch parallel text, test sets and models by their names."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile

DESCRIPTION = (
    "Download parallel corpora, test sets and models by their names. Interrupted downloads are resumed, all files are "
    "checked, and a manifest records what was fetched."
)
EPILOG = """\
Without --corpus, the command fetches the corpora that the papers used for a language. For a language that they did not
use, it fetches all corpora of the catalogue that have it.

  st-paragram download --lang es
  st-paragram download --lang fr-es-de --list
  st-paragram download --lang de --corpus Europarl --corpus OPUS:NLLB --corpus mtdata:OPUS-ted2020-v1-deu-eng
  st-paragram download --sets tatoeba --lang es-tr --folder data/eval
  st-paragram download --sets lid --folder data/models

Files that are complete are not fetched again. Each corpus has its own licence, which is shown and is recorded in
FOLDER/manifest.json. It is up to you to respect it.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    lang = "languages to fetch, each paired with --source, e.g. es or fr-es-de"
    add("--lang", metavar="CODE[-CODE...]", help=lang)
    add("--source", default="en", metavar="CODE", help="source language (default: %(default)s)")
    add_corpus_options(parser, "corpus to fetch instead of the papers' corpora; repeatable")
    sets = "other files to fetch: tatoeba, bucc, lid, paranmt or sts; repeatable"
    add("--sets", action="append", default=[], metavar="NAME", help=sets)
    add("--list", action="store_true", help="only show what would be fetched")
    terms = (
        "with --sets sts, also fetch STS 2012 and the STS Benchmark, and agree to their terms; without this option, "
    )
    add("--accept-msr-terms", action="store_true", help=f"{terms}the terms are shown")


def add_corpus_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, corpus: str) -> None:
    """Add the options of everything that downloads corpora."""
    add = parser.add_argument
    add("--corpus", action="append", default=[], metavar="NAME[@VERSION]", help=corpus)
    mirror = "mirror to fetch from, with the same file paths (default: each corpus's server)"
    add("--mirror", metavar="URL", help=mirror)
    folder = "download folder (default: %(default)s)"
    add("--folder", type=Path, default=Path("data/raw"), metavar="DIR", help=folder)
    add("--parallel", type=int, default=4, metavar="N", help="files to fetch at a time (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Fetch the files, or show what would be fetched; returns the exit status."""
    from st_paragram.tools.corpora.fetching.download import download

    files = _files(arguments)
    sts = "sts" in arguments.sets
    if not files and not sts:
        raise SettingsError("nothing to fetch; name languages with --lang, or files with --sets")
    if files:
        sys.stdout.write(f"{table(files)}\n")
    if arguments.list:
        return 0
    if files:
        fetched = download(files, arguments.folder, arguments.parallel)
        fresh = sum(got.fresh for got in fetched)
        sys.stdout.write(f"{arguments.folder}: {fresh} files fetched, {len(fetched) - fresh} already downloaded\n")
    return _sts(arguments) if sts else 0


def _files(arguments: argparse.Namespace) -> list[CorpusFile]:
    from st_paragram.tools.corpora.resolve import corpora_for, language_pairs, set_files

    pairs = language_pairs(arguments.lang, arguments.source) if arguments.lang else []
    if arguments.corpus and not pairs:
        raise SettingsError("--corpus needs --lang, the languages to fetch of it")
    files: list[CorpusFile] = []
    for name in dict.fromkeys(arguments.sets):
        files += set_files(name, [code for _, code in pairs], arguments.mirror)
    if arguments.corpus or not arguments.sets:
        for pair in pairs:
            files += corpora_for(pair, arguments.corpus, arguments.mirror)
    return files


def table(files: list[CorpusFile]) -> str:
    """What would be fetched, one block for each corpus: its files, licence and citation."""
    blocks: dict[tuple[str, str], list[CorpusFile]] = {}
    for file in files:
        blocks.setdefault((file.name, file.version), []).append(file)
    lines = []
    for (name, version), block in blocks.items():
        cap = f", at most {block[0].cap:,} pairs used" if block[0].cap else ""
        lines += [f"{name} {version}{cap}", *(f"  {file.url}{_size(file)}" for file in block)]
        lines.append(f"  licence: {block[0].licence}")
        lines += [f"  cite: {block[0].citation}"] if block[0].citation else []
        lines += [f"  note: {block[0].note}"] if block[0].note else []
    return "\n".join(lines)


def _size(file: CorpusFile) -> str:
    size = file.size or file.about
    return f"  ({size / 2**20:,.1f} MiB)" if size else ""


def _sts(arguments: argparse.Namespace) -> int:
    from st_paragram.tools.evaluation.sts.download import MICROSOFT_TERMS, SMT_TERMS, download_sts

    got = download_sts(arguments.folder, arguments.accept_msr_terms)
    sys.stdout.write(f"STS: {len(got.written)} sets fetched, {len(got.kept)} already downloaded\n\n{SMT_TERMS}\n")
    if got.refused:
        sys.stdout.write(f"\nNot fetched: {', '.join(got.refused)}. {MICROSOFT_TERMS}\n")
    return 1 if got.refused else 0
