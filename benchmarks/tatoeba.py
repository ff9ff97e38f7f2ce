"""Error rate of finding translations: `python benchmarks/tatoeba.py MODEL... --data DIR [--languages spa deu ...]`.

DIR holds the Tatoeba test sets (Artetxe and Schwenk, TACL 2019) as `spa-eng.tsv`, rows `foreign TAB English`, or as
first published. Instead, `--data FILE.tsv...` scores any files of two columns. Errors are x 100, by nearest neighbour
among all sentences of the other side: by cosine, and by margin (ratio, k = 4). Needs faiss: `st_paragram[mining]`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.scripts import finish

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.data.text import TextSource
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.margin import DEFAULT_K
from st_paragram.tools.evaluation.benchmark_runs import run_tatoeba
from st_paragram.tools.evaluation.tatoeba_files import tatoeba_sets
from st_paragram.tools.evaluation.translations import read_translations


def main() -> int:
    """Score every model on every language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", nargs="+", required=True, metavar="DIR|FILE.tsv")
    parser.add_argument("--languages", nargs="+", metavar="CODE", help="ISO 639-3 or e.g. es; default: all in DIR")
    parser.add_argument("--k", type=int, default=DEFAULT_K, help="neighbours in a margin's background (%(default)s)")
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    sources = _sources(arguments.data, arguments.languages)
    sets = [read_translations(source, name) for name, source in sources.items()]
    return finish(run_tatoeba(arguments.models, sets, arguments.k, arguments.untrained), arguments.json)


def _sources(data: list[str], languages: list[str] | None) -> dict[str, TextSource]:
    if len(data) == 1 and not Path(data[0]).is_file():
        return tatoeba_sets(data[0], languages)
    if languages:
        raise SettingsError("--languages chooses among the test sets of one folder, --data names files; drop one")
    if folders := [path for path in data if Path(path).is_dir()]:
        raise SettingsError(f"--data takes one folder or files; {folders[0]} is a folder among {len(data)} paths")
    stems = [Path(path).stem.removesuffix("-eng") for path in data]
    names = stems if len(set(stems)) == len(stems) else data
    return {name: TextSource((path,), ("first", "second")) for name, path in zip(names, data, strict=True)}


if __name__ == "__main__":
    sys.exit(run_reporting_errors("tatoeba", main))
