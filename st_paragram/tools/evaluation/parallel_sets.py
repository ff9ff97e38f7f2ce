"""The parallel test sets; to add one, add an entry to `PARALLEL_SETS`."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.core.languages import LANGUAGES, MODEL_LANGUAGES
from st_paragram.tools.evaluation.hub_data import HubData


@dataclass(frozen=True)
class ParallelSet:
    """Translations of the same sentences in many languages."""

    name: str  # of the benchmark and of the folder with the files
    title: str
    paper: str
    file_name: (
        str  # pattern; its group is the language, in ISO 639-3, perhaps with script or region
    )
    example: str  # a file name
    files: str  # names of the files that a folder needs, for the help
    hub: HubData
    # Parallel by line: a file per language, so that any two languages can be paired, and mteb's
    # measures. Otherwise a file per language with its translations into English, and the papers'
    # error rates.
    is_one_text: bool = True
    sentences: int = 0  # per language, in the set of the published figures; 0 without such figures


_ENTRIES = (
    ParallelSet(
        name="tatoeba",
        title="Tatoeba",
        paper="Artetxe and Schwenk, TACL 2019",
        file_name=r"([a-z]{3})-eng\.tsv",
        example="spa-eng.tsv",
        files="tatoeba/spa-eng.tsv",
        hub=HubData(
            "mteb/tatoeba-bitext-mining",
            revision="69e8f12da6e31d59addadda9a9c8a2e601a0e282",
        ),
        is_one_text=False,
        sentences=1000,
    ),
    ParallelSet(
        name="ntrex",
        title="NTREX-128",
        paper="Federmann, Kocmi and Xin, SUMEval 2022",
        file_name=r"newstest2019-(?:src|ref)\.([\w-]+)\.txt",
        example="newstest2019-ref.spa.txt",
        files="ntrex/newstest2019-src.eng.txt, newstest2019-ref.spa.txt",
        hub=HubData(
            "mteb/NTREXBitextMining",
            revision="66b8b27efc99658903127730575e9fa0cb9f075c",
        ),
        sentences=1997,
    ),
    ParallelSet(
        name="flores",
        title="FLORES-200",
        paper="Goyal et al., TACL 2022; NLLB Team 2022",
        file_name=r"(\w+)\.devtest",
        example="spa_Latn.devtest",
        files="flores/eng_Latn.devtest, ...",
        hub=HubData(
            "mteb/FloresBitextMining",
            revision="2144d16cc15edd22d4a9237d12bff5f31f5c07fc",
            split="devtest",
        ),
    ),
)
#: Name -> parallel test set, in the order of the benchmarks.
PARALLEL_SETS = {entry.name: entry for entry in _ENTRIES}


def is_known_language(code: str) -> bool:
    """Whether a code such as "zho-CN" or "zho_Hans" belongs to a language of p-sp-base."""
    bare = _without_script(code)
    return any(bare in LANGUAGES[language].test_codes for language in MODEL_LANGUAGES)


def is_language(code: str, language: str) -> bool:
    """Whether a code such as "zho-CN" or "zho_Hans" belongs to a language as the user named it."""
    names = {language}
    if language in LANGUAGES:
        names.update(LANGUAGES[language].test_codes)
    return code == language or _without_script(code) in names


def _without_script(code: str) -> str:
    return code.replace("-", "_").partition("_")[0]
