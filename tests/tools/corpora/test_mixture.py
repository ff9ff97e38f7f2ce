"""Lists of texts with weights: what is read, refused and written, and how many rows a weight stores."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.cli.main import main
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.corpora.mixture import MixtureSource, read_mixture, write_mixture
from st_paragram.tools.preparation.plan_stage import quotas
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings


def written(folder, **entries):
    path = folder / "mixture.yaml"
    path.write_text(yaml.safe_dump({"sources": entries}, sort_keys=False))
    return path


def text(folder, name, rows=4, word="word"):
    (folder / name).write_text("".join(f"{word} number {n} of all\tpalabra {word} {n} de todas\n" for n in range(rows)))
    return name


def test_a_list_is_read_from_its_folder(tmp_path):
    (tmp_path / "faq.csv").write_text("spanish,english\nuno,one\n")
    path = written(
        tmp_path,
        talks={"path": "talks.tsv", "languages": "en-es", "weight": 0.3, "cap": 7},
        manual={"path": ["m.en", "m.de"], "languages": "en-de", "group": "manuals", "weight": 0},
        faq={"path": "faq.csv", "languages": "es-en", "columns": ["spanish", "english"]},
    )
    talks, manual, faq = read_mixture(path)
    assert talks.source == TextSource((str(tmp_path / "talks.tsv"),), ("en", "es"), cap=7, weight=0.3)
    assert (talks.name, talks.group, talks.weight) == ("talks", "talks", 0.3)
    assert manual.source.paths == (str(tmp_path / "m.en"), str(tmp_path / "m.de"))
    assert (manual.group, manual.weight) == ("manuals", 0)
    assert (faq.source.pair, faq.source.columns, faq.weight) == (("en", "es"), ("spanish", "english"), 1)
    write_mixture(tmp_path / "again.yaml", [talks, manual, faq], "what was\nfound")
    assert (tmp_path / "again.yaml").read_text().startswith("# what was\n# found\nsources:\n  talks:\n")
    assert read_mixture(tmp_path / "again.yaml") == [talks, manual, faq]
    assert yaml.safe_load((tmp_path / "again.yaml").read_text())["sources"]["talks"]["path"] == "talks.tsv"
    (tmp_path / "deeper").mkdir()
    write_mixture(tmp_path / "deeper" / "again.yaml", [talks, faq])
    assert read_mixture(tmp_path / "deeper" / "again.yaml") == [talks, faq]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "a.tsv"}, "sources.a.languages: Field required"),
        ({"path": "a.tsv", "languages": "en-es", "wieght": 1}, "sources.a.wieght: Unexpected"),
        ({"path": "a.tsv", "languages": "en-es", "weight": -1}, "sources.a.weight: .*greater than or equal to 0"),
        ({"path": "a.tsv", "languages": "en-es", "weight": 1001}, "sources.a.weight: .*less than or equal to 1000"),
        ({"path": "a.tsv", "languages": "en-es", "weight": float("nan")}, "sources.a.weight: .*finite"),
        ({"path": "a.tsv", "languages": "en-es", "weight": "much"}, "sources.a.weight: .*number"),
        ({"path": "a.tsv", "languages": "en-es", "cap": 0}, "sources.a.cap: .*greater than 0"),
        ({"path": "a.tsv", "languages": "es"}, "a: languages is 'es'; write two codes"),
        ({"path": "a.tsv", "languages": "de-es"}, "a: languages is 'de-es'; write two codes, one of them en"),
        ({"path": [], "languages": "en-es"}, "a: 0 paths"),
        ({"path": ["a", "b", "c"], "languages": "en-es"}, "a: 3 paths"),
        ({"path": ["a", "b"], "languages": "en-es", "columns": ["x", "y"]}, "columns are given for two files"),
        ({"path": "a.tsv", "languages": "en-es", "columns": ["x"]}, "columns x for 1 text; give two"),
        ("a.tsv", "sources.a: "),
    ],
)
def test_a_wrong_entry_is_refused_by_name(tmp_path, entry, message):
    with pytest.raises(SettingsError, match=message) as error:
        read_mixture(written(tmp_path, a=entry))
    assert "\n" not in str(error.value)


def test_a_wrong_list_is_refused(tmp_path):
    for content in ("", "[1]", "sources: []", "sources: {}", "sources:\n\t- 1", "texts: {}"):
        (tmp_path / "x.yaml").write_text(content)
        with pytest.raises(SettingsError, match=r"x\.yaml: "):
            read_mixture(tmp_path / "x.yaml")
    with pytest.raises(SettingsError, match=r"none\.yaml"):
        read_mixture(tmp_path / "none.yaml")
    entry = {"path": "a.tsv", "languages": "en-es"}
    with pytest.raises(SettingsError, match=r"a: .* but en-de is expected"):
        read_mixture(written(tmp_path, a=entry), ("en", "de"))
    (tmp_path / "a.csv").write_text("english,spanish\none,uno\n")
    with pytest.raises(TextError, match="name its columns with"):
        read_mixture(written(tmp_path, a=entry | {"path": "a.csv"}))


weights = st.floats(0.01, 1000) | st.sampled_from([0.0, 0.3, 1.0, 2.0])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(min_size=1).filter(lambda name: name.strip() == name), weights, st.none() | st.integers(1)),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each[0],
    )
)
def test_what_is_written_is_read_again(tmp_path_factory, entries):
    folder = tmp_path_factory.mktemp("lists")
    made = [
        MixtureSource(name, TextSource((str(folder / f"{n} ü.tsv"),), ("en", "es"), cap=cap), group=name).weighted(
            weight
        )
        for n, (name, weight, cap) in enumerate(entries)
    ]
    write_mixture(folder / "list.yaml", made)
    assert read_mixture(folder / "list.yaml") == made


def test_a_weight_multiplies_what_the_cap_leaves():
    def source(weight, cap=None, languages=("en", "es")):
        return TextSource(("t",), languages, cap=cap, weight=weight)

    assert quotas([100, 10, 10], [source(0.3), source(2.0), source(1.0)], 1) == [30, 20, 10]
    assert quotas([100, 100], [source(0.5, cap=50), source(2.5, cap=50)], 1) == [25, 125]
    # by temperature: 2 * 450 = 900 pairs of Spanish and 100 of German, in proportion to 30 and 10
    assert quotas([450, 100], [source(2.0), source(1.0, languages=("en", "de"))], 2) == [750, 250]


def stored(path):
    store = PairStore(path)
    rows = range(len(store))
    return Counter(zip(store.texts("a", rows), store.texts("b", rows), strict=True))


def test_a_store_has_exactly_the_weighted_rows_and_the_same_at_each_run(tmp_path):
    texts = {name: str(tmp_path / text(tmp_path, name, 40, name[0])) for name in ("few.tsv", "twice.tsv", "once.tsv")}
    weights = {"few.tsv": 0.3, "twice.tsv": 2.0, "once.tsv": 1.0}
    sources = [TextSource((path,), ("en", "es"), weight=weights[name]) for name, path in texts.items()]
    options = PrepareSettings(("en", "es"), vocab_size=60, vocab_threads=1)
    report = prepare(sources, tmp_path / "one.h5", options).report
    prepare(sources, tmp_path / "two.h5", options)
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()
    counts = stored(tmp_path / "one.h5")
    by_source = {word: sorted(n for (a, _), n in counts.items() if a.startswith(f"{word} ")) for word in "fto"}
    assert by_source == {"f": [1] * 12, "t": [2] * 40, "o": [1] * 40}
    assert [(each.kept, each.repeated) for each in report.sources] == [(12, 0), (80, 40), (40, 0)]
    with pytest.raises(SettingsError, match="a weight of 0; give one above 0"):
        prepare([TextSource(sources[0].paths, ("en", "es"), weight=0.0)], tmp_path / "x.h5", options)


def test_prepare_reads_a_list_and_leaves_out_what_weighs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries = {
        name: {"path": text(tmp_path, f"{name}.tsv", 20, name), "languages": "en-es", "weight": weight}
        for name, weight in (("full", 1.0), ("half", 0.5), ("none", 0.0))
    }
    written(tmp_path, **entries)
    options = ["--lang", "es", "--output", "new.h5", "--vocab-size", "60", "--vocab-threads", "1", "--no-checks"]
    assert main(["prepare", "--sources", "mixture.yaml", *options]) == 0
    words = Counter(first.split()[0] for first, _ in stored("new.h5").elements())
    assert words == {"full": 20, "half": 10}
    assert main(["prepare", "--sources", "mixture.yaml", *options, "--overwrite", "--cap", "4"]) == 0
    assert sum(stored("new.h5").values()) == 4 + 2
