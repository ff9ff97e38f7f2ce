"""Samples, rows that are held out, the vocabulary's text, and stores of mixtures compared with `prepare`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from support.data import make_pairs

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError, TextError
from st_paragram.mixing import development
from st_paragram.mixing.development import Development, read_development
from st_paragram.mixing.samples import draw, hold_out, without_development
from st_paragram.mixing.stores import balanced, mixed_rows, stores, write_mixed
from st_paragram.tools.corpora.mixture import MixtureSource
from st_paragram.tools.evaluation import known_test_sets
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.translations import Translations
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

LANGUAGES = ("en", "de-es")
NOTHING = Development([], {})


def source(folder, name, pairs, language="es", **options):
    path = folder / f"{name}.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    return MixtureSource(name, TextSource((str(path),), ("en", language), **options), group=name)


def drawn(folder, *sources, most=1000, seed=0, work="work"):
    return draw(sources, LANGUAGES, most, seed, folder / work)


def test_rows_are_drawn_by_what_they_are(tmp_path):
    pairs = make_pairs(300)
    (first,) = drawn(tmp_path, source(tmp_path, "a", pairs), most=50)
    (again,) = drawn(tmp_path, source(tmp_path, "b", [*reversed(pairs), *pairs, ("", "x"), ("x", " ")]), most=50)
    (other,) = drawn(tmp_path, source(tmp_path, "a", pairs), most=50, seed=1)
    assert len(list(first.pairs())) == 50 and set(first.pairs()) <= set(pairs)
    assert set(again.pairs()) <= set(first.pairs()) != set(other.pairs())
    assert first.languages == "en-es"
    (capped,) = drawn(tmp_path, source(tmp_path, "a", pairs, cap=7), most=50)
    assert list(capped.pairs()) == list(first.pairs())[:7]
    (spaced,) = drawn(tmp_path, source(tmp_path, "c", [("a  b", " c"), ("x", "y")]))
    assert set(spaced.pairs()) == {("a b", "c"), ("x", "y")}
    with pytest.raises(TextError, match=r"one.tsv: 1 different rows with two texts"):
        drawn(tmp_path, source(tmp_path, "one", [("a", "b"), ("a", "b"), ("", "c")]))


def test_pairs_are_held_out_of_each_language_without_translations(tmp_path):
    sources = [
        source(tmp_path, name, make_pairs(200, n), language)
        for n, (name, language) in enumerate([("a", "es"), ("b", "es"), ("c", "de")])
    ]
    samples = drawn(tmp_path, *sources)
    given = Development([], {"en-de": Translations("en-de", ["x"], ["y"])})
    held = hold_out(samples, 30, given).translations
    assert len(held["en-es"]) == 30 and len(held["en-de"]) == 1
    both = zip(held["en-es"].first, held["en-es"].second, strict=True)
    by_source = Counter(next(sample.source.name for sample in samples if pair in set(sample.pairs())) for pair in both)
    assert by_source == {"a": 15, "b": 15}
    # never more than a tenth of a source
    assert len(hold_out(samples, 1000, NOTHING).translations["en-de"]) == len(list(samples[2].pairs())) // 10
    assert hold_out(samples, 0, NOTHING).translations == {}


def test_what_models_are_scored_on_is_not_trained_on(tmp_path):
    pairs = [*make_pairs(20), ("A  Graded text", "uno"), ("dos", "A held out Text"), ("tres", "cuatro")]
    graded = GradedPairs("g", ["a graded TEXT"], ["other"], [1.0])
    scored = Development([graded], {"en-es": Translations("t", ["b"], ["a held out text"])})
    (sample,) = without_development(drawn(tmp_path, source(tmp_path, "a", pairs)), scored, tmp_path / "texts")
    left = set(sample.pairs())
    assert ("tres", "cuatro") in left and len(left) == len(set(pairs)) - 2
    everything = Development([GradedPairs("g", [a for a, _ in pairs], [b for _, b in pairs], [1.0])], {})
    with pytest.raises(TextError, match="a: 0 rows that are not in a development set"):
        without_development(drawn(tmp_path, source(tmp_path, "a", pairs)), everything, tmp_path / "texts")


def test_the_vocabulary_sees_as_many_pairs_of_each_language(tmp_path):
    sizes = (("a", "es", 400), ("b", "es", 10), ("c", "de", 60))
    samples = drawn(
        tmp_path,
        *(
            source(tmp_path, name, make_pairs(size, n, 10**9), language)
            for n, (name, language, size) in enumerate(sizes)
        ),
    )
    rows = list(balanced(samples, 80))
    texts = {sample.source.name: set(sample.pairs()) for sample in samples}
    counts = Counter(name for row in rows for name, known in texts.items() if row in known)
    assert counts == {"c": 40, "a": 30, "b": 10}
    assert Counter(row in texts["c"] for row in balanced(samples, 10**6)) == {True: 60, False: 410}


@pytest.mark.parametrize("temperature", [1, 3])
def test_a_mixture_has_the_rows_that_prepare_would_store(tmp_path, vocabulary, temperature):
    pairs = make_pairs(240)
    parts = [("a", "es", pairs[:120], 0.3), ("b", "es", pairs[60:180], 2.0), ("c", "de", pairs[180:], 1.0)]
    sources = [source(tmp_path, name, rows, language).weighted(weight) for name, language, rows, weight in parts]
    settings = PrepareSettings(LANGUAGES)
    samples = drawn(tmp_path, *sources)
    prepared = stores(samples, settings, vocabulary, tmp_path / "stores")
    rows = mixed_rows(prepared, [each.source for each in sources], temperature)
    mixed = write_mixed(prepared, rows, LANGUAGES, tmp_path / "mixed.h5")
    texts = [
        TextSource((str(sample.path),), each.source.pair, weight=each.weight)
        for sample, each in zip(samples, sources, strict=True)
    ]
    report = prepare(texts, tmp_path / "whole.h5", replace(settings, temperature=temperature), vocabulary).report
    assert [len(each) for each in rows] == [each.kept for each in report.sources]
    whole = PairStore(tmp_path / "whole.h5")

    def counted(store):
        every = list(range(len(store)))
        return Counter(zip(store.row_languages(every), store.texts("a", every), store.texts("b", every), strict=True))

    if temperature == 1:  # which of the rows are repeated in part is drawn, so only whole copies can be compared

        def of(store, copies):
            return {row for row, count in counted(store).items() if count == copies}

        assert of(mixed, 2) == of(whole, 2) and len(of(mixed, 1)) == len(of(whole, 1))
    assert mixed.languages == whole.languages and mixed.language_pairs == whole.language_pairs


def test_test_sets_and_second_files_are_refused(tmp_path, monkeypatch):
    (tmp_path / "x.tsv").write_text("a b c\td e f\ng h\ti j\n")
    text = TextSource((str(tmp_path / "x.tsv"),), ("en", "es"))
    assert list(read_development([], [text], LANGUAGES).translations) == ["en-es"]
    with pytest.raises(EvaluationError, match="a second file of en-es; put both into one file"):
        read_development([], [text, text], LANGUAGES)
    (tmp_path / "long.tsv").write_text("".join(f"a {n}\tb {n}\n" for n in range(10_001)))
    with pytest.raises(EvaluationError, match="10,001 translations; cut them down to 10,000"):
        read_development([], [TextSource((str(tmp_path / "long.tsv"),), ("en", "es"))], LANGUAGES)
    monkeypatch.setattr(
        development, "known_test_set_in", lambda *_: known_test_sets.TestSetMatch("Some Test", 100, 0.5)
    )
    (tmp_path / "graded.tsv").write_text("1\ta\tb\n2\tc\td\n")
    for graded, texts, name in (([tmp_path / "graded.tsv"], [], "graded"), ([], [text], "x")):
        with pytest.raises(
            EvaluationError, match=rf"{name}.tsv: holds about 50% of the 100 pairs of Some Test, a test"
        ):
            read_development(graded, texts, LANGUAGES)
