"""A store of several languages says of which ones each row is; a store of one pair of languages is as it always was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import TextSource, parse_source
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

SETTINGS = PrepareSettings(("en", "fr-es"), vocab_size=300, character_coverage=1.0)
WORDS = "ba ce di fo gu ha je ki lo mu".split()  # noqa: SIM905


def write(folder: Path, name: str, count: int) -> Path:
    """Rows of which each names its text and number on both sides."""
    rows = [f"{name} {' '.join(WORDS[int(d)] for d in str(number))} a\tin {name} {number} b" for number in range(count)]
    path = folder / f"{name}.tsv"
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_rows_keep_the_languages_of_their_texts(tmp_path, temperature) -> None:
    counts = {"en-fr": 60, "es-en": 25, "en-en": 40, "en-es": 30}
    specs = [f"{name}:{write(tmp_path, name, count)}" for name, count in counts.items()]
    sources = [parse_source(spec, SETTINGS.languages) for spec in specs]
    settings = replace(SETTINGS, temperature=temperature)
    prepare(sources, tmp_path / "s.h5", settings)
    store = PairStore(tmp_path / "s.h5")
    assert store.languages == ("en", "fr-es")
    assert store.language_pairs == (("en", "fr"), ("en", "es"), ("en", "en"))
    rows = np.arange(len(store))
    for languages, first, second in zip(
        store.row_languages(rows), store.texts("a", rows), store.texts("b", rows), strict=True
    ):
        name = (second if first.startswith("in ") else first).partition(" ")[0]
        assert languages == tuple(sorted(name.split("-"), key=lambda code: code != "en"))
    assert set(store.row_languages(rows)) == set(store.language_pairs)
    assert temperature > 1 or len(store) == sum(counts.values())


@pytest.mark.parametrize(
    ("languages", "spec"),
    [
        (("en", "es"), ""),
        (("en", "es"), "es-en:"),
        (("en", "zh"), "en-zh_cn:"),
        (("en", "zh_cn"), "en-zh:"),
        (("en", "en"), ""),
    ],
)
def test_one_pair_of_languages_needs_no_languages_of_rows(tmp_path, languages, spec) -> None:
    source = parse_source(f"{spec}{write(tmp_path, 'xx-yy', 40)}", languages)
    prepare([source], tmp_path / "s.h5", replace(SETTINGS, languages=languages))
    store = PairStore(tmp_path / "s.h5")
    assert store.language_pairs == (languages,) and store.row_languages(np.array([3])) == [languages]


def test_paraphrases_beside_bitext(tmp_path) -> None:
    settings = replace(SETTINGS, languages=("en", "es"))
    specs = [str(write(tmp_path, "en-es", 30)), f"en-en:{write(tmp_path, 'en-en', 20)}"]
    prepare([parse_source(spec, settings.languages) for spec in specs], tmp_path / "s.h5", settings)
    store = PairStore(tmp_path / "s.h5")
    languages = store.row_languages(np.arange(len(store)))
    assert (languages.count(("en", "es")), languages.count(("en", "en"))) == (30, 20)


@pytest.mark.parametrize(
    ("source", "languages", "expected"),
    [
        (TextSource(("x",), ("en", "fr")), ("en", "fr-es-de"), ("en", "fr")),
        (TextSource(("x",), ("de", "en"), swapped=True), ("en", "fr-es-de"), ("en", "de")),
        (TextSource(("x",), ("en_gb", "zh_cn")), ("en", "zh"), ("en", "zh")),
        (TextSource(("x",), ("en", "zh_tw")), ("en", "zh_cn-zh_tw"), ("en", "zh_tw")),
        (TextSource(("x",), ("en", "pt")), ("en", "pt_br-es"), ("en", "pt_br")),
        (TextSource(("x",), ("en", "en")), ("en", "es"), ("en", "en")),
        (TextSource(("x", "y"), ("en", "fr-es")), ("en", "fr-es"), ("en", "fr-es")),
    ],
)
def test_codes_are_those_wanted(source, languages, expected) -> None:
    assert source.pair_among(languages) == expected
