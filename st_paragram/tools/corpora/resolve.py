"""From names of corpora and languages to files that can be fetched.

The index of mtdata (https://github.com/thammegowda/mtdata) is asked, too; mtdata itself downloads nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from st_paragram.core.extras import require
from st_paragram.errors import DownloadError, SettingsError
from st_paragram.tools.corpora.catalogue import Catalogue, Corpus, load_catalogue
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.opus import API, find_in_opus, opus_filename

if TYPE_CHECKING:
    from mtdata.entry import Entry


def language_pairs(spec: str, first: str = "en") -> list[tuple[str, str]]:
    """Pairs of languages: `es` means English and Spanish, `fr-es-de` English with each of the three.

    Args:
        spec: Codes with hyphens between them.
        first: The language that all others are paired with.

    Raises:
        SettingsError: A code is empty or named twice.
    """
    codes = [code for code in spec.split("-") if code != first]
    if not codes or not all(codes) or len(set(codes)) < len(codes):
        raise SettingsError(f"--lang {spec}: give language codes other than {first}, each once, as in es or fr-es-de")
    return [(first, code) for code in codes]


def corpora_for(
    languages: tuple[str, str] = ("en", "es"),
    names: Sequence[str] = (),
    mirror: str | None = None,
    catalogue: Catalogue | None = None,
    api: str = API,
) -> list[CorpusFile]:
    """The files to fetch for two languages.

    Args:
        languages: Codes, in the order in which the two sides of a pair are written.
        names: The corpora to take; none for those that the catalogue has for the language. `Europarl` or `Europarl@v7`
            is in the catalogue, `OPUS:NLLB` or `OPUS:NLLB@v1` in the index of OPUS, and
            `mtdata:OPUS-nllb-v1-eng-spa` in that of mtdata.
        mirror: A server to use in place of each file's own, with the same paths.
        catalogue: The catalogue to look in; by default the one that comes with the package.
        api: Address of the index of OPUS, which is asked only about names with `OPUS:`.

    Raises:
        SettingsError: A name is unknown; the message lists the known ones.
        MissingExtraError: A name begins with `mtdata:` and mtdata is not installed.
        DownloadError: An index does not answer, or has no such corpus.
    """
    catalogue = load_catalogue() if catalogue is None else catalogue
    if names:
        files = [_named(name, languages, catalogue, api) for name in dict.fromkeys(names)]
    else:
        files = _usual(languages, catalogue)
    return [replace(file, pair=languages).at(mirror) for file in files]


def set_files(
    name: str, languages: Sequence[str] = (), mirror: str | None = None, catalogue: Catalogue | None = None
) -> list[CorpusFile]:
    """The files of another set of the catalogue: test sets, paraphrases, the model that identifies languages.

    Args:
        name: The name of the set.
        languages: Codes of languages; none for all that the set has. English, which every set has, is ignored.
        mirror: See `corpora_for`.
        catalogue: See `corpora_for`.

    Raises:
        SettingsError: There is no such set, or it does not have one of the languages.
    """
    catalogue = load_catalogue() if catalogue is None else catalogue
    if name not in catalogue.sets:
        raise SettingsError(f"unknown set {name}; there are {', '.join(sorted(catalogue.sets))}")
    entry = catalogue.sets[name]
    wanted = [code for code in languages if code != "en"] or list(entry.codes)
    if entry.codes and (unknown := [code for code in wanted if code not in entry.codes]):
        raise SettingsError(f"{name} has no {', '.join(unknown)}; it has {', '.join(entry.codes)}")
    urls = [url.format(code=entry.codes[code]) for code in wanted for url in entry.urls] if entry.codes else entry.urls
    return [
        CorpusFile(
            name=name,
            version=entry.version,
            url=url,
            filename=(filename := PurePosixPath(url).name),
            licence=entry.licence,
            citation=entry.citation,
            size=entry.sizes.get(filename),
            sha256=entry.sha256.get(filename),
            note=entry.note,
        ).at(mirror)
        for url in dict.fromkeys(urls)
    ]


def _usual(languages: tuple[str, str], catalogue: Catalogue) -> list[CorpusFile]:
    """The corpora of the paper for its languages; for another language all, some of which may not have it."""
    first, second = languages
    known = catalogue.languages.get(second) if first == "en" else None
    names = catalogue.corpora if known is None else known
    files = [_of_catalogue(catalogue.corpora[name], languages, catalogue) for name in names]
    return [replace(file, optional=known is None) for file in files]


def _named(name: str, languages: tuple[str, str], catalogue: Catalogue, api: str) -> CorpusFile:
    source, _, rest = name.rpartition(":")
    if source.lower() == "mtdata":
        return find_in_mtdata(rest, languages)
    corpus, _, version = rest.partition("@")
    spelled = {known.lower(): known for known in catalogue.corpora}
    entry = catalogue.corpora.get(spelled.get(corpus.lower(), ""))
    if source.upper() == "OPUS" and corpus:
        codes = _codes(entry, languages) if entry else languages
        return _described(find_in_opus(corpus, version or None, codes, api), entry)
    if source or entry is None:
        there = ", ".join(catalogue.corpora)
        raise SettingsError(
            f"--corpus {name}: not in the catalogue, which has {there}; other corpora of OPUS are named OPUS:{rest}, "
            "those of mtdata mtdata:ID"
        )
    return _of_catalogue(replace(entry, version=version) if version else entry, languages, catalogue)


def _codes(corpus: Corpus, languages: tuple[str, str]) -> tuple[str, str]:
    first, second = (corpus.codes.get(code, code) for code in languages)
    return first, second


def _described(file: CorpusFile, corpus: Corpus | None) -> CorpusFile:
    return (
        file
        if corpus is None
        else replace(file, licence=corpus.licence, citation=corpus.citation, cap=corpus.cap, note=corpus.note)
    )


def _of_catalogue(corpus: Corpus, languages: tuple[str, str], catalogue: Catalogue) -> CorpusFile:
    codes = _codes(corpus, languages)
    url = catalogue.opus.format(corpus=corpus.name, version=corpus.version, pair="-".join(sorted(codes)))
    filename = opus_filename(corpus.name, corpus.version, codes)
    return _described(CorpusFile(corpus.name, corpus.version, url, filename, codes), corpus)


_MTDATA = ("entry", "index", "iso.bcp47")


def find_in_mtdata(name: str, languages: tuple[str, str]) -> CorpusFile:
    """Look a corpus up by its id, such as `OPUS-nllb-v1-eng-spa`; mtdata builds its index the first time (a minute).

    Args:
        name: The id of the corpus.
        languages: Codes of the two languages wanted, in the order wanted.

    Raises:
        MissingExtraError: mtdata is not installed.
        SettingsError: The name is not an id, or the id of a corpus in other languages.
        DownloadError: The index has no such corpus, or the corpus consists of several files.
    """
    before = logging.getLogger().handlers[:]
    try:
        entries, index, codes = (require(f"mtdata.{name}", "mtdata", "a name with mtdata:") for name in _MTDATA)
    finally:
        logging.getLogger().handlers[:] = before  # mtdata adds its own when it is imported
    try:
        wanted = entries.DatasetId.parse(name)
        pair = tuple(codes.bcp47(code) for code in languages)
    except Exception as error:  # mtdata raises plain exceptions, and various others for unknown codes
        raise SettingsError(f"mtdata:{name}: no id of mtdata ({error}); `mtdata list -id` shows the ids") from error
    shown = "-".join(languages)
    if wanted not in index.INDEX:
        raise DownloadError(f"mtdata:{name}: not in its index; `mtdata list -id -l {shown}` shows what is")
    entry = index.INDEX[wanted]
    if len(entry.did.langs) != 2 or not entry.is_compatible(pair):
        raise SettingsError(f"mtdata:{name}: a corpus of {entry.did.lang_str}, but {shown} is wanted; name another")
    if not isinstance(entry.url, str):
        raise DownloadError(
            f"mtdata:{name}: it consists of several files; fetch it with `mtdata get` and give its text with --text"
        )
    return CorpusFile(
        name=f"{entry.did.group}-{entry.did.name}",
        version=entry.did.version,
        url=entry.url,
        filename=f"{entry.did}.{entry.ext}",
        languages=_mtdata_codes(entry, languages),
        licence="not known to mtdata; look it up before you use the corpus",
        citation=", ".join(entry.cite or ()),
    )


def _mtdata_codes(entry: Entry, languages: tuple[str, str]) -> tuple[str, str]:
    """The codes in which the archive's members end (`*.en`, `*.zh_CN`); for a table, the order of its columns."""
    from mtdata.iso.bcp47 import bcp47

    swapped = not entry.did.langs[0].is_compatible(bcp47(languages[0]))
    codes = [member.rpartition(".")[2] for member in entry.in_paths or ()]
    if len(codes) == 2 and codes[0] != codes[1]:  # members are listed in the order of the languages of the id
        return (codes[1], codes[0]) if swapped else (codes[0], codes[1])
    return (languages[1], languages[0]) if swapped else languages
