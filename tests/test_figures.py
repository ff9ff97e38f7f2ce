"""A figure that several pages state is the same on all of them, up to rounding, and on the cards of
the models.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "st_paragram/core/model_directory/shipped"
MODELS, RESULTS, MUSE, SPEED = "docs/models.md", "docs/results.md", "docs/muse.md", "docs/speed.md"
LANGUAGES = ("de", "es", "fr", "ru", "tr", "ar", "zh")  # in the order of cells with several figures
TRACKS = ("en-en", "es-es", "es-en", "ar-ar", "ar-en", "tr-en")

RECORDS = "benchmarks/records/2026-11/models.md"

#: Page, heading, and the measures of columns by their heads: in the first table under the heading
#: that has them all.
TABLES = [
    (
        "README.md",
        "How it compares",
        {
            "MB": "size",
            "sentences/s": "sentences/s",
            "NTREX-128": "NTREX",
            "NTREX, 34 languages": "NTREX, 34 languages",
            "STS 2012-2016": "Spearman STS 2012-2016",
            "Pearson": "Pearson STS 2012-2016",
            "STS 2017 es-en": "Spearman es-en",
            "ar-en": "Spearman ar-en",
        },
    ),
    (MODELS, "p-sp-mini and p-sp-base", {"size": "size"}),
    (
        MODELS,
        "p-sp-large",
        {"size": "size", "NTREX, 34 languages": "NTREX, 34 languages"},
    ),
    (
        MODELS,
        "p-sp-mini and p-sp-base",
        {"STS 2012-2016": "Pearson STS 2012-2016", "Tatoeba": "Tatoeba"},
    ),
    (MODELS, "p-sp-mini and p-sp-base", {track: f"Pearson {track}" for track in TRACKS}),
    (
        MODELS,
        "Comparison with other models",
        {"size on disk": "size", "STS 2012-2016": "Spearman STS 2012-2016"},
    ),
    (MODELS, "Comparison with other models", {track: f"Spearman {track}" for track in TRACKS[1:]}),
    (RESULTS, "English similarity", {"average without SMT": "Pearson STS 2012-2016"}),
    (RESULTS, "English similarity", {"STS12-16": "Spearman STS 2012-2016"}),
    (
        RESULTS,
        "Similarity in and across languages",
        {track: f"Pearson {track}" for track in TRACKS},
    ),
    (RESULTS, "Finding translations", {language: f"Tatoeba {language}" for language in LANGUAGES}),
    (RESULTS, "Finding translations", {"mean": "NTREX"}),
    (MUSE, "Scores", {"STS 2012-2016": "Pearson STS 2012-2016", "Tatoeba": "Tatoeba"}),
    (MUSE, "Scores", {track: f"Pearson {track}" for track in TRACKS}),
    (SPEED, "Small models from PyPI", {"new sentences/s": "sentences/s"}),
    (SPEED, "Small models from PyPI", {"size": "size"}),
    (SPEED, "Small models from PyPI", {"STS 2012-2016": "Pearson STS 2012-2016"}),
    (SPEED, "Small models from PyPI", {track: f"Pearson {track}" for track in ("en-en", "es-en")}),
]
#: Page, measure, and a pattern with a model and its figure.
SENTENCES = [
    ("README.md", "size", r"`(?P<model>p-sp-\w+)` \((?P<value>\d+) MB\)"),
    (
        MODELS,
        "Pearson STS 2012-2016",
        r"(?P<model>p-sp-large) has (?P<value>\d\d\.\d) on STS 2012-2016",
    ),
    ("PACKAGE.md", "size", r'Encoder\("(?P<model>p-sp-mini)"\).* (?P<value>\d+) MB, included'),
    ("docs/index.md", "size", r'Encoder\("(?P<model>p-sp-mini)"\).* (?P<value>\d+) MB, included'),
    (RESULTS, "FLORES", r"(?P<model>p-sp-\w+|multilingual USE) (?P<value>\d\d\.\d) and \d\d\.\d"),
    (
        "docs/evaluation.md",
        "Pearson STS 2012-2016",
        r"(?P<model>p-sp-mini):? (?P<value>\d\d\.\d) (?:\(mean|over years)",
    ),
    (
        "docs/evaluation.md",
        "Spearman STS 2012-2016",
        r"(?P<model>p-sp-mini) .*?and (?P<value>\d\d\.\d) \(combined",
    ),
    (
        "docs/evaluation.md",
        "Pearson ar-en",
        r"(?P<model>p-sp-mini) on STS 2017: (?P<value>\d\d\.\d) and .* on ar-en",
    ),
    (
        "docs/evaluation.md",
        "Spearman ar-en",
        r"(?P<model>p-sp-mini) on STS 2017: .*? and (?P<value>\d\d\.\d) on ar-en",
    ),
    ("docs/evaluation.md", "Pearson es-en", r"(?P<model>p-sp-mini): (?P<value>\d\d\.\d) on es-en"),
]
#: Data sets on a card, as on the pages.
CARD = {f"mteb-sts17-{'-'.join(sorted(track.split('-')))}": track for track in TRACKS}
CARD |= {"mteb-sts17-es-en": "es-en"}
ALIASES = {
    "published multilingual USE": "multilingual USE",
    "published multilingual USE, imported": "multilingual USE",
    "published model": "multilingual USE",
    "WordLlama, 256 dimensions": "WordLlama",
}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def model_of(cell):
    """The model's name without emphasis, links, code and remarks in parentheses."""
    name = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell)
    name = re.sub(r"\s*\(.*?\)|[*`]", "", name).strip()
    return ALIASES.get(name, name)


def tables_under(page, heading):
    """The tables between a heading and the next: lists of rows, which are lists of cells."""
    section = re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text_of(page), re.MULTILINE | re.DOTALL
    )
    assert section, f"{page}: no heading {heading}"
    for table in re.findall(r"(?:^\|.*\n)+", section[1], re.MULTILINE):
        yield [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def stated_in_tables():
    for page, heading, columns in TABLES:
        tables = [
            table
            for table in tables_under(page, heading)
            if set(columns) <= {*map(head_of, table[0])}
        ]
        assert tables, f"{page}: no table under {heading} has the columns {', '.join(columns)}"
        head, _, *rows = tables[0]
        for place, measure in enumerate(columns.get(head_of(title)) for title in head):
            for row in rows if measure else []:
                yield from (
                    (page, key, value)
                    for key, value in stated_in_cell(model_of(row[0]), measure, row[place])
                )


def head_of(title):
    return "Tatoeba" if title.startswith("Tatoeba ") else title


def stated_in_cell(model, measure, cell):
    numbers = NUMBER.findall(cell.replace("*", ""))
    if measure == "Tatoeba" and len(numbers) > 1:
        return [
            ((model, f"Tatoeba {language}"), value)
            for language, value in zip(LANGUAGES, numbers, strict=True)
        ]
    return [((model, measure), value) for value in numbers[:1]]


def stated_in_sentences():
    for page, measure, pattern in SENTENCES:
        matches = list(re.finditer(pattern, text_of(page)))
        assert matches, f"{page}: nothing like {pattern}"
        for match in matches:
            yield page, (model_of(match["model"]), measure), match["value"]


def stated_on_cards():
    for card in SHIPPED.glob("*/README.md"):
        (model,) = yaml.safe_load(card.read_text(encoding="utf-8").split("---\n")[1])["model-index"]
        for result in model["results"]:
            track = CARD.get(result["dataset"]["type"])
            if track:
                page = card.relative_to(ROOT).as_posix()
                yield page, (model["name"], f"Spearman {track}"), str(result["metrics"][0]["value"])
    for folder in SHIPPED.iterdir():
        if folder.is_dir():
            records = ("README.md", "training.json")
            size = (
                sum(path.stat().st_size for path in folder.iterdir() if path.name not in records)
                / 1e6
            )
            yield folder.relative_to(ROOT).as_posix(), (folder.name, "size"), f"{size:.2f}"


def agree(one, other):
    """Whether two figures are the same when the finer one is rounded as the other: 71.66 and 71.7,
    1,028 and 1,000.
    """
    return abs(value_of(one) - value_of(other)) <= 0.51 * max(step_of(one), step_of(other))


def value_of(figure):
    return float(figure.replace(",", ""))


def step_of(figure):
    """The last digit's worth; zeros at the end of a whole number are rounding."""
    digits = figure.replace(",", "")
    if "." in digits:
        return 10.0 ** -len(digits.partition(".")[2])
    return 10.0 ** (len(digits) - len(digits.rstrip("0")))


def test_a_figure_is_the_same_wherever_it_is_stated():
    places = defaultdict(list)
    for page, key, value in [*stated_in_tables(), *stated_in_sentences(), *stated_on_cards()]:
        places[key].append((page, value))
    several = {key: stated for key, stated in places.items() if len(stated) > 1}
    assert len(several) > 50
    wrong = []
    for (model, measure), stated in several.items():
        if not all(agree(value, other) for _, value in stated for _, other in stated):
            wrong.append(
                f"{model}, {measure}: {', '.join(f'{value} in {page}' for page, value in stated)}"
            )
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("71.66", "71.7", True),
        ("71.0", "71.1", False),
        ("1,028", "1,000", True),
        ("33", "78", False),
        ("8", "7.6", True),
    ],
)
def test_figures_agree_up_to_rounding(one, other, same):
    assert agree(one, other) is same


def test_figures_of_earlier_models_say_so():
    """Figures measured before the included models were trained say that their model is older."""
    current = re.search(r"p-sp-mini until (\d{4}-\d\d-\d\d)", text_of(RECORDS))[1]
    wrong = []
    for path in (ROOT / "docs").glob("**/*.md"):
        for section in re.split(r"^#", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            for day in re.findall(r"Measured on (\d{4}-\d\d-\d\d)", section):
                if (
                    day < current
                    and re.search("p-sp-(mini|base)", section)
                    and "with an earlier p-sp-" not in section
                ):
                    wrong.append(
                        f"{path.name}: figures of {day}, but no 'with an earlier p-sp-mini'"
                    )
    assert not wrong, "\n".join(wrong)
