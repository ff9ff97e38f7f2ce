r"""Make a test set for semantic retrieval, or translate the queries of a retrieval set.

    python data_prep/make_retrieval_set.py --pairs FILE --output DIR/quora/en
    python data_prep/make_retrieval_set.py --askubuntu TEXTS LIST... --output DIR/askubuntu
    python data_prep/make_retrieval_set.py --translations es.tsv --back-translations es-en.tsv \
        --judge use --output DIR/quora/es

`--pairs` takes rows `sentence TAB equivalent sentence` (rows with one sentence are further
candidates), `--askubuntu` the files of taolei87/askubuntu (Lei et al., NAACL 2016): rows
`id TAB title TAB body`, and `id TAB ids of similar questions TAB ids of others`. Groups are the
transitive closure of the pairs: every sentence of a group is a query, and should find the others
(Gillick et al. 2018; Yang et al., ACL 2020). The folder gets queries.tsv, corpus.tsv and qrels.tsv.

`--translations` takes machine translations of the English queries, rows `id TAB text`, and
`--back-translations` their translations back into English. The folder of a language, next to the
English set in `en`, gets queries.tsv. Queries are left out if one of their translations is missing,
or if the cosine of the English query and the back-translation is below 0.5 (Yang et al., ACL 2020,
cross-lingual retrieval). `--judge` is the model that computes the cosine.

`st-paragram evaluate MODEL --data DIR` scores models on the sets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.files import write_text
from st_paragram.core.outputs import check_new
from st_paragram.errors import EvaluationError, SettingsError, TextError, short
from st_paragram.tools.evaluation.files import Translations, check_filled, packed, read_cells
from st_paragram.tools.evaluation.retrieval_sets import read_texts
from st_paragram.tools.evaluation.scores import cosines

# id -> sentence, and ids of equivalent sentences
Set = tuple[dict[str, str], list[tuple[str, str]]]


def main() -> int:
    """Make the set that the options describe."""
    arguments = _arguments()
    output = arguments.output
    if arguments.translations:
        return translate_set(arguments)
    files = {name: output / f"{name}.tsv" for name in ("queries", "corpus", "qrels")}
    for path in files.values():
        check_new(path)
    if arguments.pairs:
        corpus, pairs = read_pairs(arguments.pairs)
    else:
        texts, *lists = arguments.askubuntu
        corpus, pairs = read_askubuntu(texts, lists)
    keys = list(corpus)
    members = sorted((row, group) for group in groups_of(corpus, pairs) for row in group)
    qrels = [(keys[row], keys[other]) for row, group in members for other in group if other != row]
    if not qrels:
        raise EvaluationError("no pairs of different sentences; give pairs of equivalent sentences")
    queries = {keys[row]: corpus[keys[row]] for row, _ in members}
    _write(files["queries"], queries.items())
    _write(files["corpus"], corpus.items())
    _write(files["qrels"], qrels)
    print(f"{len(queries):,} queries, {len(corpus):,} candidates")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument("--pairs", type=Path, metavar="FILE")
    data.add_argument("--askubuntu", nargs="+", type=Path, metavar="FILE")
    data.add_argument("--translations", type=Path, metavar="FILE")
    parser.add_argument("--back-translations", type=Path, metavar="FILE")
    parser.add_argument("--judge", metavar="MODEL", help="model that computes the cosines")
    parser.add_argument(
        "--min-cosine",
        type=float,
        default=0.5,
        metavar="X",
        help="minimum cosine of a query and its back-translation (default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="output folder")
    arguments = parser.parse_args()
    needed = [arguments.back_translations, arguments.judge]
    if (arguments.translations and not all(needed)) or (not arguments.translations and any(needed)):
        raise SettingsError(
            "--translations, --back-translations and --judge belong together; give all three"
        )
    return arguments


def _write(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    write_text(path, "".join("\t".join(row) + "\n" for row in rows))


def translate_set(arguments: argparse.Namespace) -> int:
    """Write the good translations of the English queries next to the output folder."""
    path = arguments.output / "queries.tsv"
    check_new(path)
    english_folder = arguments.output.with_name("en")
    english_file = packed(english_folder / "queries.tsv")
    if english_file is None:
        raise EvaluationError(
            f"{english_folder}: no queries.tsv; put the English set in this folder, or choose"
            " another --output"
        )
    english = read_texts(english_file)
    translations = _read_translations(arguments.translations, english)
    back = _read_translations(arguments.back_translations, english)
    complete = [key for key in english if key in translations and key in back]
    judge = load_encoder(arguments.judge)
    originals = {key: english[key] for key in complete}
    good = good_translations(judge, originals, back, min_cosine=arguments.min_cosine)
    if not good:
        raise EvaluationError(
            f"{arguments.translations}: no good translation; check the ids and the"
            " back-translations, or lower --min-cosine"
        )
    _write(path, [(key, translations[key]) for key in good])
    print(
        f"{len(good):,} of {len(english):,} queries; left out: {len(english) - len(complete):,}"
        f" without both translations, {len(complete) - len(good):,} with a cosine below"
        f" {arguments.min_cosine:g}"
    )
    return 0


def _read_translations(path: Path, english: Mapping[str, str]) -> dict[str, str]:
    texts = read_texts(path)
    for key in texts:
        if key not in english:
            raise TextError(f"{path}: id {short(key)} is not an English query; correct the id")
    return texts


def good_translations(
    judge: TextEncoder, english: Mapping[str, str], back: Mapping[str, str], min_cosine: float
) -> list[str]:
    """Return the ids of the queries whose back-translation has at least this cosine with them.

    A text without a known token has the cosine 0.
    """
    back_texts = [back[key] for key in english]
    pairs = Translations("back-translations", list(english.values()), back_texts)
    similarities = cosines(judge, pairs).tolist()
    return [key for key, cosine in zip(english, similarities, strict=True) if cosine >= min_cosine]


def groups_of(corpus: dict[str, str], pairs: Sequence[tuple[str, str]]) -> list[list[int]]:
    """Return the rows of the sentences in each group of at least two sentences.

    Groups are the connected components of the pairs.
    """
    places = {key: row for row, key in enumerate(corpus)}
    edges = [[places[pair[side]] for pair in pairs] for side in (0, 1)]
    graph = coo_array(([1] * len(pairs), edges), shape=(len(corpus), len(corpus)))
    labels = connected_components(graph, directed=False)[1]
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(labels):
        groups.setdefault(int(label), []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def read_pairs(path: Path) -> Set:
    """Read rows `sentence TAB equivalent sentence`, or rows with one sentence.

    Equal sentences are one candidate.
    """
    ids: dict[str, str] = {}
    pairs = []
    for number, cells in read_cells(path, 1, 2):
        check_filled(path, number, *cells)
        keys = [ids.setdefault(cell, f"s{len(ids)}") for cell in cells]
        pairs.append((keys[0], keys[-1]))
    return {key: text for text, key in ids.items()}, pairs


def read_askubuntu(texts: Path, lists: Sequence[Path]) -> Set:
    """Read the titles of the questions that the lists name; the same title is the same question."""
    titles = {cells[0]: cells[1] for _, cells in read_cells(texts, 2, 3)}
    ids: dict[str, str] = {}  # title -> id
    corpus: dict[str, str] = {}
    pairs = []
    for path in lists:
        for number, cells in read_cells(path, 2, 4):
            similar = cells[1].split()
            others = cells[2].split() if len(cells) > 2 else []
            keys = []
            for key in (cells[0], *similar, *others):
                title = titles.get(key, "")
                if not title.strip():
                    raise TextError(
                        f"{path}: row {number}: no title of question {short(key)} in {texts};"
                        " complete it"
                    )
                first_key = ids.setdefault(title, key)
                corpus[first_key] = title
                keys.append(first_key)
            for other in keys[1 : 1 + len(similar)]:
                pairs.append((keys[0], other))
    return corpus, pairs


if __name__ == "__main__":
    sys.exit(run_reporting_errors("make_retrieval_set", main))
