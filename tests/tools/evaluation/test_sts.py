import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from st_paragram.errors import EvaluationError, MissingExtraError, SettingsError
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.report import published
from st_paragram.tools.evaluation.scores import pair_cosines
from st_paragram.tools.evaluation.sets import BENCHMARKS, YEARS, StsData, read_sts, select_sets
from st_paragram.tools.evaluation.sts import (
    MEAN_PEARSON,
    MTEB_SPEARMAN,
    POOLED_SPEARMAN,
    concatenations,
    mteb_name,
    papers_means,
    pooled_means,
    sts_scores,
    tables,
)

ROWS = [(5, "a b c", "a b c"), (2.5, "a b", "b d"), (0, "x y", "c d"), (1, "a c", "d x")]


class Words:
    """Stands for a model: a text's vector counts its letters."""

    def __init__(self, constant=False):
        self.constant = constant

    def encode(self, texts, **kwargs):
        rows = np.array([[text.count(letter) + 0.1 * i for i, letter in enumerate("abcdxy")] for text in texts])
        rows = np.ones((len(texts), 6)) if self.constant else rows
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def write_tsv(path, rows=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{grade}\t{one}\t{two}\n" for grade, one, two in rows), encoding="utf-8")


def keys(year, *without):
    return [info.key for info in BENCHMARKS[year].sets if info.name not in without]


# --- sets


def test_the_catalogue_has_the_official_numbers():
    pairs = {year: sum(info.pairs for info in BENCHMARKS[year].sets) for year in YEARS}
    assert pairs == {"2012": 3108, "2013": 2250, "2014": 3750, "2015": 3000, "2016": 1186}
    assert [len(BENCHMARKS[year].sets) for year in YEARS] == [5, 4, 6, 5, 5]
    assert [info.pairs for info in BENCHMARKS["stsb"].sets] == [5749, 1500, 1379]
    assert {info.languages for info in BENCHMARKS["2017"].sets} == {
        ("ar", "ar"), ("ar", "en"), ("es", "es"), ("es", "en"), ("en", "en"), ("tr", "en"),
    }  # fmt: skip


def test_sets_are_chosen_by_name():
    assert [info.key for info in select_sets(["stsb", "2017/en-en"])] == ["2017/en-en", "stsb/dev", "stsb/test"]
    assert [info.key for info in select_sets(["stsb/train"])] == ["stsb/train"]
    assert len(select_sets()) == 25 + 7 + 2
    with pytest.raises(SettingsError, match="'2011' is not an STS benchmark; there are 2012"):
        select_sets(["2011"])
    with pytest.raises(SettingsError, match=r"'2017/ko-ko': STS 2017 has the tracks ar-ar, .*, tr-en, no 'ko-ko'"):
        select_sets(["2017/ko-ko"])


def test_both_layouts_are_found(tmp_path):
    write_tsv(tmp_path / "sts2012" / "MSRpar.tsv")
    write_tsv(tmp_path / "sts2013" / "FNWN.tsv", ROWS[:2])
    write_tsv(tmp_path / "sts2017" / "track4b.es-en.tsv")
    write_tsv(tmp_path / "stsb" / "en-dev.tsv")
    (folder := tmp_path / "STS14-en-test").mkdir()
    (folder / "STS.input.deft-forum.txt").write_text("".join(f"{one}\t{two}\n" for _, one, two in ROWS))
    with pytest.raises(EvaluationError, match=r"deft-forum\.txt: its gold STS\.gs\.deft-forum\.txt is missing"):
        read_sts(tmp_path)
    (folder / "STS.gs.deft-forum.txt").write_text("".join(f"{grade}\n" for grade, _, _ in ROWS))
    data = read_sts(tmp_path)
    assert list(data.sets) == ["2012/MSRpar", "2013/FNWN", "2014/deft-forum", "2017/es-en-4b", "stsb/dev"]
    assert data.altered == list(data.sets) and len(data.sets["2013/FNWN"]) == 2
    assert all(pairs.name == key and pairs.first[:2] == ["a b c", "a b"] for key, pairs in data.sets.items())
    notes = "\n".join(data.notes)
    assert "2013/SMT is missing (its licence forbids passing it on" in notes and "2013/OnWN is missing\n" in notes
    assert "2015: nothing under" in notes


def test_nothing_found_is_an_error(tmp_path):
    with pytest.raises(EvaluationError, match=r"nothing of STS 2012; expected e\.g\. sts2012/MSRpar\.tsv"):
        read_sts(tmp_path, ["2012"])
    with pytest.raises(EvaluationError, match="no such folder"):
        read_sts(tmp_path / "nowhere")


def test_the_hub_gives_years_in_one_piece(monkeypatch, tmp_path):
    asked = []

    def load_dataset(path, subset=None, split=None, revision=None):
        asked.append((path, subset, split))
        assert re.fullmatch("[0-9a-f]{40}", revision)  # what is changed at the hub later is not read
        if path == "mteb/sts16-sts":
            raise ConnectionError("offline\nmore")
        return dict(zip(("score", "sentence1", "sentence2"), map(list, zip(*ROWS, strict=True)), strict=True))

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    write_tsv(tmp_path / "sts2014" / "OnWN.tsv")
    data = read_sts(tmp_path, ["2013", "2014", "2017/ar-en", "2017/es-en-4b", "stsb/dev"], hub=True)
    assert asked == [
        ("mteb/sts13-sts", None, "test"),
        ("mteb/sts17-crosslingual-sts", "en-ar", "test"),
        ("mteb/stsbenchmark-sts", None, "validation"),
    ]
    assert list(data.sets) == ["2014/OnWN", "2017/ar-en", "stsb/dev"] and list(data.years) == ["2013"]
    assert "2013: the hub has the year in one piece" in "\n".join(data.notes) and "2013" in data.altered
    found = scores({"m": Words()}, data)
    assert ("2013", MEAN_PEARSON) not in found and {("2013", POOLED_SPEARMAN), ("STS13", MTEB_SPEARMAN)} <= set(found)
    with pytest.raises(EvaluationError, match=r"2016: the hub did not give mteb/sts16-sts \(ConnectionError: offline"):
        read_sts(None, ["2016"], hub=True)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r'pip install "st_paragram\[eval\]"'):
        read_sts(None, ["2012"], hub=True)


# --- protocols


def test_the_papers_means_by_hand():
    values = dict.fromkeys((key for year in YEARS for key in keys(year)), 0.5)
    values |= {"2012/MSRpar": 0.6, "2013/FNWN": 0.2, "2013/headlines": 0.4, "2013/OnWN": 0.6, "2013/SMT": 0.0}
    got = papers_means(values)
    assert got["2012"] == pytest.approx(0.52)  # (0.6 + 4 x 0.5) / 5, however many pairs each has
    assert got["2013"] == pytest.approx(0.3) and got["2013 without SMT"] == pytest.approx(0.4)
    assert got["average"] == pytest.approx((0.52 + 0.3 + 3 * 0.5) / 5)
    assert got["average without SMT"] == pytest.approx((0.52 + 0.4 + 3 * 0.5) / 5)
    assert list(got) == [
        "2012", "2013", "2013 without SMT", "2014", "2015", "2016", "average", "average without SMT",
        "all sets", "all sets without SMT",
    ]  # fmt: skip
    assert got["all sets"] == pytest.approx((0.6 + 0.2 + 0.4 + 0.6 + 0.0 + 20 * 0.5) / 25)  # a year counts by its sets
    assert got["all sets without SMT"] == pytest.approx((0.6 + 0.2 + 0.4 + 0.6 + 20 * 0.5) / 24)
    draws = papers_means({key: np.array([value, 0.0]) for key, value in values.items()})
    assert draws["average"].tolist() == pytest.approx([got["average"], 0])


def test_means_of_incomplete_years_say_so():
    got = papers_means(dict.fromkeys((key for year in YEARS for key in keys(year, "SMT")), 0.5))
    assert got["2013"] is None and got["average"] is None and got["all sets"] is None
    assert got["2013 without SMT"] == got["average without SMT"] == got["all sets without SMT"] == pytest.approx(0.5)
    assert papers_means(dict.fromkeys(keys("2012", "MSRvid", "OnWN") + keys("2014"), 0.5)) == {
        "2012": None,
        "2012 without MSRvid, OnWN": pytest.approx(0.5),
        "2014": pytest.approx(0.5),
        "average": None,
        "average without SMT": None,
        "average of 2012 without MSRvid, OnWN, 2014": pytest.approx(0.5),
        "all sets": None,
        "all sets without SMT": None,
    }


def test_concatenations_leave_out_smt_and_name_what_is_missing():
    got = concatenations(keys("2012", "MSRvid") + keys("2013") + keys("2014"))
    assert got["2013"] == ["2013/FNWN", "2013/headlines", "2013/OnWN"]
    assert set(got) == {"2012 without MSRvid", "2013", "2014"}
    means = pooled_means({"2012 without MSRvid": 0.1, "2013": 0.5, "2014": 0.9})
    assert means["average"] is None
    assert means["average of 2012 without MSRvid, 2013, 2014"] == pytest.approx(0.5)
    assert pooled_means({year: 0.1 * i for i, year in enumerate(YEARS)})["average"] == pytest.approx(0.2)
    assert pooled_means({}) == {"average": None}


def test_names_in_mteb():
    names = [mteb_name(key) for key in ("2012", "2017/ar-en", "2017/tr-en", "stsb/test")]
    assert names == ["STS12", "STS17/en-ar", "STS17/en-tr", "STSBenchmark"]
    assert not any(map(mteb_name, ("2017/es-en-4b", "stsb/dev", "2012/MSRpar")))


# --- scores


def random_pairs(name, n, seed):
    random = np.random.default_rng(seed)
    first, second = (["".join(random.choice(list("abcdxy"), 12)) for _ in range(n)] for _ in range(2))
    return GradedPairs(name, first, second, random.uniform(0, 5, n).tolist())


def sample(*names):
    return StsData({name: random_pairs(name, 20 + number, number) for number, name in enumerate(names)}, {})


ALL = sample(*[key for year in YEARS for key in keys(year, "SMT")], "2017/en-en", "2017/ar-en", "stsb/dev", "stsb/test")


def cosines(models, data):
    return {
        name: {key: pair_cosines(model, pairs) for key, pairs in data.everything.items()}
        for name, model in models.items()
    }


def scores(models, data, compare=False):
    """(Set, measure) -> score of the last model."""
    found = sts_scores(cosines(models, data), data, compare)
    return {(score.set, score.measure): score for score in found}


def test_figures_equal_scipy_on_cosines_of_sklearn():
    from sklearn.metrics.pairwise import paired_cosine_distances  # as mteb has them

    model, found, by_sklearn = Words(), scores({"m": Words()}, ALL), {}
    for key, pairs in ALL.sets.items():
        by_sklearn[key] = 1 - paired_cosine_distances(7 * model.encode(pairs.first), 0.3 * model.encode(pairs.second))
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
    assert mteb == {"STS12", "STS13", "STS14", "STS15", "STS16", "STS12-16", "STS17/en-en", "STS17/en-ar",
                    "STSBenchmark"}  # fmt: skip


def test_constant_scores_are_reported_not_averaged():
    data = sample(*keys("2012"), "2017/en-en")
    found = sts_scores(cosines({"good": Words(), "bad": Words(constant=True)}, data), data, compare=True)
    bad = {(score.set, score.measure): score.value for score in found if score.model == "bad"}
    assert set(bad.values()) == {None} and ("2012", MEAN_PEARSON) in bad
    text = "\n".join(tables(found, data))
    assert "| bad | undefined | undefined |" in text and "nan" not in text.lower()
    assert "| 2012 | bad | mean Pearson | undefined | undefined .. undefined | undefined |" in text


def test_models_are_compared_on_the_papers_means():
    data = sample(*keys("2012"), *keys("2016"), "stsb/dev")
    one, noise = cosines({"one": Words()}, data), np.random.default_rng(5)
    better = {k: one["one"][k] + 2 * (np.array(p.grades) + noise.normal(size=len(p))) for k, p in data.sets.items()}
    found = sts_scores({**one, "better": better, "same": one["one"]}, data, compare=True)
    compared = {score.set: score for score in found if score.against == "one" and score.model == "better"}
    assert list(compared) == ["2012", "2016", "average of 2012, 2016", "stsb/dev"]
    plain = {(s.model, s.set): s.value for s in found if s.measure == MEAN_PEARSON and not s.against}
    average = compared["average of 2012, 2016"]
    assert average.value == pytest.approx(plain["better", average.set] - plain["one", average.set])
    assert average.low < average.value < average.high and average.p_value == pytest.approx(2 / 10_001)
    assert average.high - average.low < compared["2016"].high - compared["2016"].low  # more pairs, less doubt
    assert {s.p_value for s in found if s.model == "same" and s.against} == {1}


def test_every_table_names_its_protocol_and_has_the_published_rows(monkeypatch):
    monkeypatch.setattr(StsData, "altered", [])
    found = sts_scores(cosines({"m": Words()}, ALL), ALL)
    parts = list(tables(found, ALL))
    heads = [part.split("\n")[0] for part in parts]
    assert sum("papers' protocol" in head for head in heads) == 5 + 1 + 1
    assert sum("Sentence-BERT's protocol" in head for head in heads) == 1
    papers = next(part for part in parts if "mean over the years" in part).split("\n")
    head = papers[2].split(" | ")

    def row(label):
        return dict(zip(head, next(line for line in papers if line.startswith(f"| {label}")).split(" | "), strict=True))

    cells = row("P-SP (published, EMNLP 2022)")
    assert (cells["2012"], cells["2013"], cells["2013 without SMT"], cells["average"]) == ("68.7", "64.7", "-", "74.6")
    acl = row("SP 20k, 2M bitext (published, ACL 2019)")
    assert (acl["average"], acl["all sets"]) == ("-", "71.0"), "its mean is over sets, not over years"
    ours = row("m ")
    value = next(s.value for s in found if (s.set, s.measure) == ("2013 without SMT", MEAN_PEARSON))
    assert (ours["2013"], ours["average"], ours["2013 without SMT"]) == ("-", "-", f"{100 * value:.1f}")
    tracks = next(part for part in parts if "STS 2017" in part)
    assert "| P-SP 1024d (published, EMNLP 2022) | - | 78.3\\78.4 |" in tracks.replace("-  |", "- |") or (
        "| P-SP 1024d (published, EMNLP 2022) |" in tracks and "78.3\\78.4" in tracks
    )
    monkeypatch.setattr(StsData, "altered", ["2012/MSRpar", "2017/ar-en"])
    text = "\n".join(tables(found, ALL))
    assert "(published" not in text and "not the published test set: 2012/MSRpar and 2017/ar-en" in text


def test_published_rows_agree_with_themselves():
    for table in ("sts", "sts-pooled", "tatoeba"):
        for row in published()[table].values():
            *cells, average = row.values()
            if len(cells) > 4 and "-" not in cells:
                assert np.mean(list(map(float, cells))) == pytest.approx(float(average), abs=0.11)
    tracks = published()["sts-2017"]
    assert tracks["P-SP 1024d (published, EMNLP 2022)"]["2017/es-en"] == "78.4\\77.8"
    random = tracks["SP 20k, random (published, ACL 2019)"]
    assert [random[f"2017/{key}"] for key in ("es-es", "es-en", "en-en")] == ["68.8", "6.5", "67.0"]
    assert published()["sts"]["SP 20k, 1M bitext (published, ACL 2019)"] == {"all sets": "70.0"}
