import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.evaluation.bootstrap import differences
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.report import published
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.sts import (
    ANGLE,
    MEAN_PEARSON,
    MTEB_SPEARMAN,
    POOLED_SPEARMAN,
    papers_means,
    score,
    tables,
    year_sets,
)
from st_paragram.tools.evaluation.sts_sets import SETS, YEARS, StsData, read, select_sets

ROWS = [(5, "a b c", "a b c"), (2.5, "a b", "b d"), (0, "x y", "c d"), (1, "a c", "d x")]


class Letters:
    """Stands for a model: a text's vector counts its letters."""

    def encode(self, texts, **kwargs):
        rows = np.array(
            [[text.count(letter) + 0.1 * i for i, letter in enumerate("abcdxy")] for text in texts]
        )
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def keys(year, *without):
    return [info.key for info in SETS[year] if info.stem not in without]


# --- sets


def test_the_catalogue_has_the_official_numbers():
    pairs = {year: sum(info.pairs for info in SETS[year]) for year in YEARS}
    assert pairs == {"2012": 3108, "2013": 2250, "2014": 3750, "2015": 3000, "2016": 1186}
    assert [len(SETS[year]) for year in YEARS] == [5, 4, 6, 5, 5]
    assert [info.pairs for info in SETS["stsb"]] == [5749, 1500, 1379]


def test_sets_are_chosen_by_name():
    assert [info.key for info in select_sets(["stsb", "2017/en-en"])] == [
        "2017/en-en",
        "stsb/dev",
        "stsb/test",
    ]
    assert [info.key for info in select_sets(["stsb/train"])] == ["stsb/train"]
    assert len(select_sets()) == 25 + 7 + 2
    with pytest.raises(SettingsError, match="'2011' is not an STS benchmark; choose from 2012"):
        select_sets(["2011"])
    with pytest.raises(
        SettingsError, match=r"'2017/ko-ko' is not a set of STS 2017; choose from 2017/ar-ar, "
    ):
        select_sets(["2017/ko-ko"])


def test_both_layouts_are_found(tmp_path, write):
    for name in ("sts2012/MSRpar", "sts2017/track4b.es-en", "stsb/en-dev"):
        write(tmp_path / f"{name}.tsv", ROWS)
    write(tmp_path / "sts2013" / "FNWN.tsv", ROWS[:2])
    write(tmp_path / "STS14-en-test" / "STS.input.deft-forum.txt", [row[1:] for row in ROWS])
    write(tmp_path / "STS14-en-test" / "STS.gs.deft-forum.txt", [row[:1] for row in ROWS])
    data = read(Request([], data=tmp_path))
    assert list(data.sets) == [
        "2012/MSRpar",
        "2013/FNWN",
        "2014/deft-forum",
        "2017/es-en-4b",
        "stsb/dev",
    ]
    assert data.altered == list(data.sets) and len(data.sets["2013/FNWN"]) == 2
    assert all(pairs.first[:2] == ["a b c", "a b"] for pairs in data.sets.values())
    smt = "2013/SMT is missing; only the Linguistic Data Consortium may distribute it"
    assert smt in data.notes
    assert f"2015: no data in {tmp_path}" in data.notes
    with pytest.raises(
        EvaluationError, match=r"no STS data for 2015; name files like sts2012/MSRpar\.tsv"
    ):
        read(Request([], data=tmp_path, sets=["2015"]))


def test_the_hub_gives_years_in_one_piece(monkeypatch, tmp_path, write):
    asked = []

    def load_dataset(path, subset=None, split=None, revision=None):
        asked.append((path, subset, split))
        # what is changed at the hub later is not read
        assert re.fullmatch("[0-9a-f]{40}", revision)
        if path == "mteb/sts16-sts":
            raise ConnectionError("offline\nmore")
        return dict(
            zip(
                ("score", "sentence1", "sentence2"), map(list, zip(*ROWS, strict=True)), strict=True
            )
        )

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    write(tmp_path / "sts2014" / "OnWN.tsv", ROWS)
    wanted = ["2013", "2014", "2017/ar-en", "2017/es-en-4b", "stsb/dev"]
    data = read(Request([], data=tmp_path, sets=wanted, hub=True))
    assert asked == [
        ("mteb/sts13-sts", None, "test"),
        ("mteb/sts17-crosslingual-sts", "en-ar", "test"),
        ("mteb/stsbenchmark-sts", None, "validation"),
    ]
    assert list(data.sets) == ["2013", "2014/OnWN", "2017/ar-en", "stsb/dev"]
    assert any(note.startswith("2013: the hub combines the sets of a year") for note in data.notes)
    found = {
        one.set: one.value for one in score("m", Letters(), data) if one.measure == POOLED_SPEARMAN
    }
    assert found["2013"] == pytest.approx(
        found["2014 without deft-forum, deft-news, headlines, images, tweet-news"]
    )
    with pytest.raises(
        EvaluationError, match=r"cannot load mteb/sts16-sts from the hub \(ConnectionError: offline"
    ):
        read(Request([], sets=["2016"], hub=True))


# --- means


def test_means_by_hand():
    values = {key: 0.5 for year in YEARS for key in keys(year)}
    # FNWN, headlines, OnWN, SMT
    values |= dict(zip(keys("2013"), (0.6, 0.2, 0.4, 0.0), strict=True))
    values["2012/MSRpar"] = 0.6
    got = papers_means({key: np.array([value, 0.0]) for key, value in values.items()})
    assert list(got) == [
        "2012",
        "2013",
        "2013 without SMT",
        "2014",
        "2015",
        "2016",
        "average",
        "average without SMT",
        "all sets",
        "all sets without SMT",
    ]
    figures = {label: mean[0] for label, mean in got.items()}
    assert figures["2012"] == pytest.approx((0.6 + 4 * 0.5) / 5) and figures[
        "2013"
    ] == pytest.approx(0.3)
    assert figures["2013 without SMT"] == pytest.approx(0.4)
    assert figures["average"] == pytest.approx((0.52 + 0.3 + 3 * 0.5) / 5)  # a year counts once
    assert figures["average without SMT"] == pytest.approx((0.52 + 0.4 + 3 * 0.5) / 5)
    # a year counts by its sets
    assert figures["all sets"] == pytest.approx((0.6 + 0.6 + 0.2 + 0.4 + 20 * 0.5) / 25)
    assert figures["all sets without SMT"] == pytest.approx((0.6 + 0.6 + 0.2 + 0.4 + 20 * 0.5) / 24)
    assert {mean[1] for mean in got.values()} == {0}  # resamples are averaged alike


def test_means_of_incomplete_years_say_so():
    half = np.array([0.5])
    got = papers_means(dict.fromkeys((key for year in YEARS for key in keys(year, "SMT")), half))
    assert set(got) == {
        "2012",
        "2013 without SMT",
        "2014",
        "2015",
        "2016",
        "average without SMT",
        "all sets without SMT",
    }
    got = papers_means(dict.fromkeys(keys("2012", "MSRvid", "OnWN") + keys("2014"), half))
    assert got == {"2012 without MSRvid, OnWN": 0.5, "2014": 0.5}
    # Sentence-BERT's protocol leaves SMT out
    found = year_sets(keys("2012", "MSRvid") + keys("2013") + keys("2014"), smt=False)
    assert set(found) == {"2012 without MSRvid", "2013", "2014"}
    assert found["2013"] == ["2013/FNWN", "2013/headlines", "2013/OnWN"]


# --- scores


def sample(*names):
    def pairs(name, n, seed):
        random = np.random.default_rng(seed)
        first, second = (
            ["".join(random.choice(list("abcdxy"), 12)) for _ in range(n)] for _ in range(2)
        )
        return GradedPairs(name, first, second, random.uniform(0, 5, n).tolist())

    return StsData({name: pairs(name, 20 + number, number) for number, name in enumerate(names)})


ALL = sample(
    *[key for year in YEARS for key in keys(year, "SMT")],
    "2017/en-en",
    "2017/ar-en",
    "stsb/dev",
    "stsb/test",
)


def test_figures_equal_scipy_on_cosines_of_sklearn():
    from sklearn.metrics.pairwise import paired_cosine_distances  # as mteb has them

    model, by_sklearn = Letters(), {}
    found = {(one.set, one.measure): one for one in score("m", model, ALL)}
    for key, pairs in ALL.sets.items():
        by_sklearn[key] = 1 - paired_cosine_distances(
            7 * model.encode(pairs.first), 0.3 * model.encode(pairs.second)
        )
        expected = stats.pearsonr(by_sklearn[key], pairs.grades).statistic
        assert found[key, "Pearson"].value == pytest.approx(expected, abs=1e-5)
        assert found[key, "Pearson"].low < expected < found[key, "Pearson"].high
    for year in YEARS:
        both = [np.concatenate([by_sklearn[key] for key in keys(year, "SMT")])]
        both.append(np.concatenate([ALL.sets[key].grades for key in keys(year, "SMT")]))
        expected = stats.spearmanr(*both).statistic
        assert found[year, POOLED_SPEARMAN].value == pytest.approx(expected, abs=1e-4)
        assert found[f"STS{year[2:]}", MTEB_SPEARMAN].value == found[year, POOLED_SPEARMAN].value
    mteb = {name for name, measure in found if measure == MTEB_SPEARMAN}
    assert mteb == {
        "STS12",
        "STS13",
        "STS14",
        "STS15",
        "STS16",
        "STS12-16",
        "STS17/en-en",
        "STS17/en-ar",
        "STSBenchmark",
    }
    angles = stats.pearsonr(
        -np.arccos(by_sklearn["stsb/dev"].round(6)), ALL.sets["stsb/dev"].grades
    ).statistic
    assert found["stsb/dev", ANGLE].value == pytest.approx(angles, abs=1e-4)


def test_means_are_compared_and_constant_scores_are_undefined():
    data = sample(*keys("2012"), *keys("2016"), "stsb/dev")
    flat = SimpleNamespace(encode=lambda texts, **_: np.full((len(texts), 4), 0.5, np.float32))
    scores = [*score("one", Letters(), data), *score("flat", flat, data)]
    scores += list(differences(scores))
    assert [of.set for of in scores if of.against == "one"] == ["stsb/dev", "2012", "2016"]
    assert {of.value for of in scores if of.model == "flat"} == {None}
    text = "\n".join(tables(scores, data))
    assert "| 2012 | flat | mean Pearson | undefined | undefined .. undefined | undefined |" in text
    assert "nan" not in text.lower()


def test_every_table_names_its_protocol_and_has_the_published_rows(monkeypatch):
    monkeypatch.setattr(StsData, "altered", [])
    found = list(score("m", Letters(), ALL))
    parts = list(tables(found, ALL))
    heads = [part.split("\n")[0] for part in parts]
    assert sum("papers' protocol" in head for head in heads) == 5 + 1 + 1 + 1
    assert sum("Sentence-BERT's protocol" in head for head in heads) == 1
    papers = next(part for part in parts if "mean over the years" in part).split("\n")
    head = papers[2].split(" | ")

    def row(label):
        return dict(
            zip(
                head,
                next(line for line in papers if line.startswith(f"| {label}")).split(" | "),
                strict=True,
            )
        )

    cells = row("P-SP (published, EMNLP 2022)")
    assert (cells["2012"], cells["2013"], cells["2013 without SMT"], cells["average"]) == (
        "68.7",
        "64.7",
        "-",
        "74.6",
    )
    # its mean is over sets
    assert row("SP 20k, 2M bitext (published, ACL 2019)")["all sets"] == "71.0"
    ours = row("m ")
    value = next(s.value for s in found if (s.set, s.measure) == ("2013 without SMT", MEAN_PEARSON))
    assert (ours["2013"], ours["average"]) == ("-", "-") and ours["2013 without SMT"].startswith(
        f"{100 * value:.1f} ["
    )
    assert "| P-SP 1024d (published, EMNLP 2022) |" in "\n".join(
        parts
    ) and "| USE_CNN (published" in "\n".join(parts)
    monkeypatch.setattr(StsData, "altered", ["2012/MSRpar", "2017/ar-en", "stsb/dev"])
    text = "\n".join(tables(found, ALL))
    assert (
        "(published" not in text
        and "not the published test set: 2012/MSRpar, 2017/ar-en and stsb/dev" in text
    )


def test_published_rows_agree_with_themselves():
    for table in ("sts", "sts-pooled", "tatoeba"):
        for row in published()[table]:
            *cells, average = row.figures.values()
            if len(cells) > 4 and "-" not in cells:
                assert np.mean([float(cell) for cell in cells]) == pytest.approx(
                    float(average), abs=0.11
                )
    tracks = {row.label: row.figures for row in published()["sts-2017"]}
    assert tracks["P-SP 1024d (published, EMNLP 2022)"]["2017/es-en"] == "78.4\\77.8"
    sts = {row.label: row.figures for row in published()["sts"]}
    assert sts["SP 20k, 1M bitext (published, ACL 2019)"] == {"all sets": "70.0"}
