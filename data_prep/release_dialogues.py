"""Make the texts of the published models from dialogues and other files with formats of their own.

    python data_prep/release_dialogues.py --repositories DIR --texts texts
    python data_prep/release_dialogues.py --repositories DIR --texts texts --only SOURCE

There is a function for each source; release_texts.py explains the folders, the entries of
recipes/release.yaml and which pairs are kept. texts/LANG/SOURCE.tsv gets rows `english TAB other`,
sentence by sentence if both sides have equally many; texts/en has sentences with the same meaning.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, groupby
from typing import Any

from clones import CODES, Origin, open_origins
from release_texts import (
    Pair,
    agreement,
    best_path,
    check_rows,
    clean,
    constants,
    joined_tokens,
    keep,
    length_gain,
    options,
    sentence_pairs,
    source_pairs,
    write_rows,
)

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError

#: Sources of Tatoeba's sentences, of which `pivot_tatoeba` is made.
TATOEBA = ("tatoeba_derived", "tatoeba_more")
#: Names of languages in the files of XPersona.
XPERSONA = {"fr": "Fr", "id": "Id", "it": "It", "ja": "Jp", "ko": "Ko", "zh": "Zh"}


def arbanking77(origins: list[Origin], _: str) -> Iterator[Pair]:
    """Read questions to a bank and their translations to standard, Palestinian and Saudi Arabic,
    which are in the same order by intent.

    The translations of the training questions are in two files, each in order. Intents of which not
    all questions are translated are left out.
    """
    arabic, english = origins
    intents = [row[1] for row in table(arabic, "data/Banking77_intents.csv")]
    for split, names in (
        ("train", ["MSA_PAL_train", "MSA_PAL_val"]),
        ("test", ["MSA_test"]),
        ("test", ["PAL_test"]),
        ("test", ["Saudi_test"]),
    ):
        rows = table(english, f"banking_data/{split}.csv")
        questions = [[text for text, _ in group] for _, group in groupby(rows, lambda row: row[1])]
        files = [
            translated_blocks(table(arabic, f"data/Banking77_Arabized_{name}.csv"), intents)
            for name in names
        ]
        for blocks in zip(*files, strict=True):
            for number, texts in enumerate(questions):
                yield from merged(texts, [block[number] for block in blocks])


def translated_blocks(
    rows: list[list[str]], intents: list[str]
) -> list[defaultdict[int, list[str]]]:
    """Return the translations by the number of their intent, in blocks that each begin again with
    the first intents.
    """
    blocks, previous = [defaultdict[int, list[str]](list)], 0
    for label, text in rows:
        number = intents.index(label)
        if number < previous:
            blocks.append(defaultdict(list))
        blocks[-1][number].append(text)
        previous = number
    return blocks


def merged(english: list[str], files: list[list[str]]) -> Iterator[Pair]:
    """Match lines with their translations in one or two files, of which each has a part in order;
    nothing if there are fewer or more translations.
    """
    first, second = [*files, []][:2]
    if len(english) != len(first) + len(second):
        return
    ratio = sum(map(len, [*first, *second])) / sum(map(len, english))

    def gain(row: int, translation: str) -> float:
        marks = constants(("", english[row])), constants(("", translation))
        return length_gain(english[row], translation, ratio) + agreement(*marks)

    # the best sum of gains of all lines from these of both files on, and the file to read first
    best = {(len(first), len(second)): (0.0, 0)}
    for row in range(len(first), -1, -1):
        for column in range(len(second), -1, -1):
            sums = []
            if row < len(first):
                sums.append((gain(row + column, first[row]) + best[row + 1, column][0], 0))
            if column < len(second):
                sums.append((gain(row + column, second[column]) + best[row, column + 1][0], 1))
            if sums:
                best[row, column] = max(sums)
    row, column = 0, 0
    for line in english:
        if best[row, column][1] == 0:
            translation, row = first[row], row + 1
        else:
            translation, column = second[column], column + 1
        yield line, translation


def table(origin: Origin, path: str) -> list[list[str]]:
    """Return the rows of a CSV file without its header."""
    text = origin.read([path])[path].decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))[1:]


def crosswoz_en_mt(origins: list[Origin], _: str) -> Iterator[Pair]:
    """Read Chinese dialogues about travel in Beijing, and their machine translations."""
    yield from convlab(origins[0], "crosswoz_en/val", "crosswoz/val")
    yield from convlab(origins[0], "crosswoz_en/test", "crosswoz/test")


def multiwoz_zh_mt(origins: list[Origin], _: str) -> Iterator[Pair]:
    """Read English dialogues about travel in Cambridge, and their machine translations."""
    yield from convlab(origins[0], "multiwoz/val", "multiwoz_zh/val")
    yield from convlab(origins[0], "multiwoz/test", "multiwoz_zh/test")


def woz_human_val(origins: list[Origin], _: str) -> Iterator[Pair]:
    """Read dialogues of both kinds that people translated."""
    yield from convlab(origins[0], "crosswoz_en/human_val", "crosswoz/val")
    yield from convlab(origins[0], "multiwoz/val", "multiwoz_zh/human_val")


def convlab(origin: Origin, english: str, other: str) -> Iterator[Pair]:
    """Match the turns of the dialogues with the same name in two archives of ConvLab-3."""
    both = []
    for name in (english, other):
        path = f"data/{name}.json.zip"
        with zipfile.ZipFile(io.BytesIO(origin.read([path])[path])) as archive:
            dialogues = json.loads(archive.read(archive.namelist()[0]))
        both.append(
            {
                key: [
                    turn.get("text") or turn["content"]
                    for turn in dialogue.get("log") or dialogue["messages"]
                ]
                for key, dialogue in dialogues.items()
            }
        )
    for key, turns in both[1].items():
        yield from turn_pairs([joined_tokens(turn) for turn in both[0].get(key, [])], turns)


def turn_pairs(english: list[str], other: list[str]) -> Iterator[Pair]:
    """Match the sentences of dialogues with equally many turns."""
    if len(english) == len(other):
        for pair in zip(english, other, strict=True):
            yield from sentence_pairs(*pair)


def diabla_dialogue(origins: list[Origin], _: str) -> Iterator[Pair]:
    """Read dialogues of English and French speakers, with corrected spelling, and their
    translations.
    """
    folder = "DiaBLa-corpus/dialogues/"
    paths = [path for path in origins[0].paths() if path.startswith(folder)]
    for data in origins[0].read(paths).values():
        for turn in json.loads(data)["utterances"].values():
            said = turn["normalised_version"] or turn["original_text"]
            translation = turn["reference_translation"]
            english = turn["language"] == "english"
            yield from sentence_pairs(*((said, translation) if english else (translation, said)))


def fisher_4refs(origins: list[Origin], _: str) -> Iterator[Pair]:
    """Read the four English translations of Spanish telephone calls, in pairs."""
    for name in ("dev", "dev2", "test"):
        paths = [f"corpus/ldc/fisher_{name}.en.{number}" for number in range(4)]
        files = [data.decode().split("\n") for data in origins[0].read(paths).values()]
        for lines in zip(*files, strict=True):
            yield from combinations(lines, 2)


def learn_git_branching(origins: list[Origin], language: str) -> Iterator[Pair]:
    """Read the lessons and messages of a game, files of JavaScript with JSON in which texts have
    names such as "de_DE"; a file with other JavaScript is left out.
    """
    paths = [
        path
        for path in origins[0].paths()
        if path.startswith("src/levels/") or path == "src/js/intl/strings.js"
    ]
    for data in origins[0].read(paths).values():
        text = data.decode()
        try:
            content = json.loads(text[text.find("{") : text.rfind("}") + 1])
        except json.JSONDecodeError:
            continue
        yield from localized(content, language)


def localized(value: Any, language: str) -> Iterator[Pair]:
    """Match the English texts in nested values with those of a language, if equally many."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        return
    if "en_US" not in value:
        for part in value.values():
            yield from localized(part, language)
        return
    codes = [code for variants in CODES[language] for code in variants]
    for name in value:
        if name in codes or (language == "es" and name.startswith("es_")):
            yield from turn_pairs(texts_in(value["en_US"]), texts_in(value[name]))


def texts_in(value: Any) -> list[str]:
    """Return the texts in nested values; those of dialogs are in `markdowns`."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for part in value for text in texts_in(part)]
    if isinstance(value, dict):
        wanted = ("childViews", "options", "markdowns", "beforeMarkdowns", "afterMarkdowns")
        return [text for key in wanted if key in value for text in texts_in(value[key])]
    return []


def russian_multiwoz(origins: list[Origin], _: str) -> Iterator[Pair]:
    """Read dialogues and their machine translations, with empty lines between the dialogues, and
    brackets around what users choose.
    """
    english = [path for path in origins[0].paths() if path.startswith("interim/v1/english/")]
    for path in english:
        other = path.replace("english", "russian").replace(".txt", "_ru.txt")
        both = [
            [
                dialogue.split("\n")
                for dialogue in re.split(r"\n\s*\n", re.sub(r"[\[\]]", "", data.decode()).strip())
            ]
            for data in origins[0].read([path, other]).values()
        ]
        if len(both[0]) == len(both[1]):
            for turns in zip(*both, strict=True):
                yield from turn_pairs(*turns)


def xpersona(origins: list[Origin], language: str) -> Iterator[Pair]:
    """Read dialogues and what the speakers say about themselves. Some English dialogues have a
    translation; the order is the same. Both parts are translations of the English test set.
    """
    for split in ("valid", "test"):
        paths = [
            "dataset/En_persona_test.json",
            f"dataset/{XPERSONA[language]}_persona_split_{split}_human_annotated.json",
        ]
        english, other = (
            [
                (len(dialogue["persona"]), [*dialogue["persona"], *chain(*dialogue["dialogue"])])
                for dialogue in json.loads(data)
            ]
            for data in origins[0].read(paths).values()
        )
        for row, column in matched_dialogues(english, other):
            texts = [joined_tokens(text) for text in english[row][1]]
            yield from turn_pairs(texts, other[column][1])


def matched_dialogues(
    english: list[tuple[int, list[str]]], other: list[tuple[int, list[str]]]
) -> list[tuple[int, int]]:
    """Match dialogues in order by the lengths of their texts; both sides have equally many texts
    before the dialogue and in all.
    """
    means = [
        sum(len(text) for _, texts in side for text in texts) / sum(len(texts) for _, texts in side)
        for side in (english, other)
    ]
    ratio = means[1] / means[0]

    def gain(row: int, column: int) -> float:
        (count, texts), (other_count, translations) = english[row], other[column]
        if count != other_count or len(texts) != len(translations):
            return -math.inf
        pairs = zip(texts, translations, strict=True)
        return sum(length_gain(*pair, ratio) for pair in pairs)

    return best_path(len(english), len(other), gain)


def pivot_tatoeba(sources: dict[str, Any], origins: dict[str, list[Origin]]) -> Iterator[Pair]:
    """Return the English sentences that have the same translation in the sources of Tatoeba."""
    languages = {language for name in TATOEBA for language in sources[name]["languages"]}
    for language in sorted(languages):
        sentences = defaultdict[str, dict[str, None]](dict)
        for name in TATOEBA:
            if language in sources[name]["languages"]:
                for english, other in source_pairs(sources[name], language, origins[name]):
                    sentences[other][english] = None
        for same in sentences.values():
            yield from combinations(same, 2)


READERS: dict[str, Callable[[list[Origin], str], Iterator[Pair]]] = {
    "arbanking77": arbanking77,
    "crosswoz_en_mt": crosswoz_en_mt,
    "diabla_dialogue": diabla_dialogue,
    "fisher_4refs": fisher_4refs,
    "learn_git_branching": learn_git_branching,
    "multiwoz_zh_mt": multiwoz_zh_mt,
    "russian_multiwoz": russian_multiwoz,
    "woz_human_val": woz_human_val,
    "xpersona": xpersona,
}


def cleaned(pairs: Iterable[Pair], language: str) -> Iterator[Pair]:
    """Clean pairs, and leave out repetitions and what is not a usable pair."""
    seen = set[Pair]()
    for english, other in pairs:
        pair = clean(english), clean(other)
        if pair not in seen and keep(*pair, language):
            seen.add(pair)
            yield pair


def main() -> int:
    """Write the texts of the chosen sources, and print how many pairs each has."""
    arguments = options(__doc__, "all that have a function here").parse_args()
    sources = read_yaml(arguments.config)["sources"]
    names = [name for name in (*READERS, "pivot_tatoeba") if name in sources]
    if unknown := [name for name in arguments.only if name not in names]:
        raise SettingsError(
            f"no source {unknown[0]!r} of this script in {arguments.config}; it has"
            f" {', '.join(names)}"
        )
    chosen = arguments.only or names
    check_rows(arguments.texts, chosen)
    read = {part for name in chosen for part in (TATOEBA if name == "pivot_tatoeba" else [name])}
    origins = open_origins(
        arguments.repositories, {name: sources[name]["from"] for name in sorted(read)}
    )
    for name in chosen:
        if name == "pivot_tatoeba":
            pairs = {"en": cleaned(pivot_tatoeba(sources, origins), "en")}
        else:
            pairs = {
                language: cleaned(READERS[name](origins[name], language), language)
                for language in sources[name]["languages"]
            }
        write_rows(arguments.texts, name, pairs)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("release_dialogues", main))
