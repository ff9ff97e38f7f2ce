import json
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from st_paragram.cli.main import main
from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.errors import EvaluationError, MissingExtraError, SettingsError, TextError
from st_paragram.tools.evaluation import tatoeba
from st_paragram.tools.evaluation.bootstrap import interval, resampled_pearson
from st_paragram.tools.evaluation.correlation import correlation, pair_cosines
from st_paragram.tools.evaluation.graded_pairs import GradedPairs, read_benchmark_pairs, read_senteval_pairs
from st_paragram.tools.evaluation.results import StsRun
from st_paragram.tools.evaluation.sts import benchmark, hard
from st_paragram.tools.evaluation.sts.benchmark import report as sts_report
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, YEARS, select_sets
from st_paragram.tools.evaluation.sts.protocols import concatenation_means, concatenations, mteb_label, papers_means
from st_paragram.tools.evaluation.sts.scores import Bootstrap, ModelScores, SetScores, score_sts, sts_result
from st_paragram.tools.evaluation.sts.sts_files import StsData, find_sts

ROWS = [(5, "a b c", "a b c"), (2.5, "a b", "b d"), (0, "x y", "c d"), (1, "a c", "d x")]


class Words:
    """Stands for a model: a text's vector counts its letters."""

    def __init__(self, scale=1.0, constant=False, broken=False):
        self.scale, self.constant, self.broken, self.calls = scale, constant, broken, []

    def encode(self, texts, normalize_embeddings=True, **kwargs):
        self.calls.append(list(texts))
        rows = np.array([[text.count(letter) + 0.1 * i for i, letter in enumerate("abcdxy")] for text in texts])
        if self.constant:
            rows = np.ones((len(texts), 6))
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        if self.broken:
            rows[0] = math.nan
        return rows.astype(np.float32)


def write_tsv(path, rows=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{grade}\t{one}\t{two}\n" for grade, one, two in rows), encoding="utf-8")


def write_task(folder, stem, rows=ROWS, task="STS", gold_folder=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{task}.input.{stem}.txt").write_text("".join(f"{one}\t{two}\n" for _, one, two in rows))
    gold_folder = gold_folder or folder
    gold_folder.mkdir(parents=True, exist_ok=True)
    (gold_folder / f"{task}.gs.{stem}.txt").write_text("".join(f"{grade}\n" for grade, _, _ in rows))


def keys(year, *without):
    return [info.key for info in BENCHMARKS[year].sets if info.name not in without]


# --- the catalogue


def test_the_catalogue_has_the_official_numbers():
    pairs = {year: sum(info.pairs for info in BENCHMARKS[year].sets) for year in YEARS}
    assert pairs == {"2012": 3108, "2013": 2250, "2014": 3750, "2015": 3000, "2016": 1186}
    assert [len(BENCHMARKS[year].sets) for year in YEARS] == [5, 4, 6, 5, 5]
    assert [info.pairs for info in BENCHMARKS["stsb"].sets] == [5749, 1500, 1379]
    assert {info.key for info in select_sets() if info.terms} == {"2012/MSRpar", "2012/MSRvid", "2013/SMT"}
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


# --- files


def test_three_layouts_are_found(tmp_path):
    write_tsv(tmp_path / "sts2012" / "MSRpar.tsv")
    write_task(tmp_path / "STS12-en-test", "surprise.OnWN")
    write_task(tmp_path / "STS" / "STS14-en-test", "deft-forum")
    write_task(tmp_path / "STS13", "FNWN")
    write_task(tmp_path / "sts2016-english-with-gs-v1.0", "plagiarism", task="STS2016")
    write_tsv(tmp_path / "sts2017" / "track4b.es-en.tsv")
    write_task(tmp_path / "sts2017.eval.v1.1", "track5.en-en", gold_folder=tmp_path / "sts2017.gs")
    (tmp_path / "STSBenchmark").mkdir()
    (tmp_path / "STSBenchmark" / "sts-dev.csv").write_text(
        "".join(f'main\tMSR\t2012\t1\t{grade}\t{one}\t{two} "\n' for grade, one, two in ROWS)
    )
    found = find_sts(tmp_path).sets
    assert list(found) == [
        "2012/MSRpar", "2012/OnWN", "2013/FNWN", "2014/deft-forum", "2016/plagiarism",
        "2017/es-en-4b", "2017/en-en", "stsb/dev",
    ]  # fmt: skip
    for key, pairs in found.items():
        assert pairs.name == key
        assert (pairs.grades, pairs.first) == ([5, 2.5, 0, 1], ["a b c", "a b", "x y", "a c"])
    assert found["stsb/dev"].second[0] == 'a b c "'


def test_years_are_not_mistaken_for_each_other(tmp_path):
    write_tsv(tmp_path / "sts2012" / "OnWN.tsv", ROWS)
    write_tsv(tmp_path / "sts2013" / "OnWN.tsv", ROWS[:2])
    found = find_sts(tmp_path).sets
    assert {key: len(pairs) for key, pairs in found.items()} == {"2012/OnWN": 4, "2013/OnWN": 2}


def test_what_is_missing_or_odd_is_noted(tmp_path):
    for name in ("FNWN", "headlines"):
        write_tsv(tmp_path / "sts2013" / f"{name}.tsv")
    write_tsv(tmp_path / "sts2017" / "track5.en-en.tsv")
    write_tsv(tmp_path / "sts2017" / "track9.ko-ko.tsv")
    notes = "\n".join(find_sts(tmp_path).notes)
    assert "2013/SMT is missing (its licence forbids passing it on" in notes
    assert "2013/OnWN is missing\n" in notes
    assert "2013/FNWN: 4 pairs, but officially 189" in notes
    assert "2012: nothing under" in notes
    assert "2017: unknown files left out: track9.ko-ko.tsv" in notes


def test_nothing_found_is_an_error(tmp_path):
    with pytest.raises(EvaluationError, match=r"nothing of STS 2012; expected e\.g\. sts2012/MSRpar\.tsv"):
        find_sts(tmp_path, ["2012"])
    with pytest.raises(EvaluationError, match="no such folder"):
        find_sts(tmp_path / "nowhere")
    write_task(tmp_path / "STS12", "MSRpar")
    (tmp_path / "STS12" / "STS.gs.MSRpar.txt").unlink()
    with pytest.raises(EvaluationError, match=r"MSRpar\.txt: its gold STS\.gs\.MSRpar\.txt is missing"):
        find_sts(tmp_path)


def test_rows_without_gold_are_skipped_and_counted(tmp_path):
    write_task(tmp_path, "belief", [("", "a", "b"), *ROWS, ("", "c", "d")])
    pairs = read_senteval_pairs(tmp_path / "STS.input.belief.txt", tmp_path / "STS.gs.belief.txt")
    assert (pairs.name, pairs.skipped, pairs.grades) == ("belief", 2, [5, 2.5, 0, 1])


def test_bad_rows_are_named(tmp_path):
    sentences, gold = tmp_path / "STS.input.X.txt", tmp_path / "STS.gs.X.txt"
    write_task(tmp_path, "X")
    gold.write_text("1\n2\n3\n")
    with pytest.raises(TextError, match=r"has 4 rows, .* has 3; they must belong together"):
        read_senteval_pairs(sentences, gold)
    for grade in ("5.1", "-0.5", "nan", "high"):
        gold.write_text(f"1\n2\n{grade}\n4\n")
        with pytest.raises(TextError, match="row 3"):
            read_senteval_pairs(sentences, gold)
    for row, reason in (("a b", "expected `sentence TAB sentence`"), ("a\t ", "an empty sentence")):
        write_task(tmp_path, "X")
        sentences.write_text(f"{row}\na\tb\na\tb\na\tb\n")
        with pytest.raises(TextError, match=f"row 1.*{reason}"):
            read_senteval_pairs(sentences, gold)
    csv = tmp_path / "sts-dev.csv"
    csv.write_text("main\tx\t2012\t1\t2.0\tonly one\n")
    with pytest.raises(TextError, match="row 1: expected at least 7 cells between TABs, saw 6"):
        read_benchmark_pairs(csv)


# --- the hub


def fake_hub(monkeypatch, asked):
    def load_dataset(path, subset=None, split=None, revision=None):
        asked.append((path, subset, split))
        assert re.fullmatch("[0-9a-f]{40}", revision)  # what is changed at the hub later is not read
        if path == "mteb/sts16-sts":
            raise ConnectionError("offline\nmore")
        columns = zip(*ROWS, strict=True)
        return dict(zip(("score", "sentence1", "sentence2"), map(list, columns), strict=True))

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))


def test_the_hub_gives_years_in_one_piece(monkeypatch, tmp_path):
    asked = []
    fake_hub(monkeypatch, asked)
    write_tsv(tmp_path / "sts2014" / "OnWN.tsv")
    data = find_sts(tmp_path, ["2013", "2014", "2017/ar-en", "2017/es-en-4b", "stsb/dev"], hub=True)
    assert asked == [
        ("mteb/sts13-sts", None, "test"),
        ("mteb/sts17-crosslingual-sts", "en-ar", "test"),
        ("mteb/stsbenchmark-sts", None, "validation"),
    ]
    assert list(data.sets) == ["2014/OnWN", "2017/ar-en", "stsb/dev"] and list(data.concatenations) == ["2013"]
    notes = "\n".join(data.notes)
    assert "2013: 4 pairs on the hub, but officially 1500" in notes
    assert "2013: the hub has the year in one piece" in notes and "2017/es-en-4b is missing" in notes
    scores = score_sts(Words(), data)
    assert scores.papers()["2014"] is None and "2013" not in scores.papers()
    assert set(scores.sentence_bert()) >= {"2013"} and set(scores.mteb()) >= {"STS13", "STS17/en-ar"}
    with pytest.raises(
        EvaluationError, match=r"2016: the hub did not give mteb/sts16-sts \(ConnectionError: offline\)"
    ):
        find_sts(None, ["2016"], hub=True)


def test_the_hub_needs_datasets(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r'pip install "st_paragram\[eval\]"'):
        find_sts(None, ["2012"], hub=True)


# --- protocols


def figures(means, values):
    return {mean.label: mean.of(values) for mean in means}


def test_the_papers_means_by_hand():
    everything = [key for year in YEARS for key in keys(year)]
    values = dict.fromkeys(everything, 0.5)
    values |= {"2012/MSRpar": 0.6, "2013/FNWN": 0.2, "2013/headlines": 0.4, "2013/OnWN": 0.6, "2013/SMT": 0.0}
    got = figures(papers_means(everything), values)
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


def test_means_of_incomplete_years_say_so():
    sets = [key for year in YEARS for key in keys(year, "SMT")]
    got = figures(papers_means(sets), dict.fromkeys(sets, 0.5))
    assert got["2013"] is None and got["average"] is None
    assert got["2013 without SMT"] == got["average without SMT"] == pytest.approx(0.5)
    assert got["all sets"] is None and got["all sets without SMT"] == pytest.approx(0.5)

    sets = keys("2012", "MSRvid", "OnWN") + keys("2014")
    got = figures(papers_means(sets), dict.fromkeys(sets, 0.5))
    assert got == {
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
    sets = keys("2012", "MSRvid") + keys("2013") + keys("2014")
    got = concatenations(sets)
    assert got["2013"] == ("2013/FNWN", "2013/headlines", "2013/OnWN")
    assert set(got) == {"2012 without MSRvid", "2013", "2014"}
    means = figures(concatenation_means(got), {"2012 without MSRvid": 0.1, "2013": 0.5, "2014": 0.9})
    assert means["average"] is None
    assert means["average of 2012 without MSRvid, 2013, 2014"] == pytest.approx(0.5)
    years = {year: 0.1 * i for i, year in enumerate(YEARS)}
    assert figures(concatenation_means(years), years)["average"] == pytest.approx(0.2)
    assert figures(concatenation_means({}), {}) == {"average": None}


def test_names_in_mteb():
    assert [mteb_label(key) for key in ("2012", "2017/ar-en", "2017/tr-en", "stsb/test")] == [
        "STS12", "STS17/en-ar", "STS17/en-tr", "STSBenchmark",
    ]  # fmt: skip
    assert mteb_label("2017/es-en-4b") is None and mteb_label("stsb/dev") is None


# --- scores


def random_pairs(name, n, seed=0):
    random = np.random.default_rng(seed)
    first, second = (["".join(random.choice(list("abcdxy"), 12)) for _ in range(n)] for _ in range(2))
    return GradedPairs(name, first, second, random.uniform(0, 5, n).tolist())


def sample(*names):
    pairs = {name: random_pairs(name, 20 + number, number) for number, name in enumerate(names)}
    return StsData(pairs, {}, ())


ALL = sample(*[key for year in YEARS for key in keys(year, "SMT")], "2017/en-en", "2017/ar-en", "stsb/dev", "stsb/test")


def test_figures_equal_scipy_on_cosines_of_sklearn():
    from sklearn.metrics.pairwise import paired_cosine_distances  # as mteb has them

    model = Words()
    scores = score_sts(model, ALL)
    cosines = {}
    for key, pairs in ALL.sets.items():
        cosines[key] = 1 - paired_cosine_distances(7 * model.encode(pairs.first), 0.3 * model.encode(pairs.second))
        expected = stats.pearsonr(cosines[key], pairs.grades).statistic
        assert scores.pearson[key] == pytest.approx(expected, abs=1e-5)
    for year in YEARS:
        scored, gold = (np.concatenate([source[key] for key in keys(year, "SMT")]) for source in (
            cosines, {key: pairs.grades for key, pairs in ALL.sets.items()}
        ))  # fmt: skip
        expected = stats.spearmanr(scored, gold).statistic
        assert scores.sentence_bert()[year] == pytest.approx(expected, abs=1e-4)
        assert scores.mteb()[f"STS{year[2:]}"] == scores.sentence_bert()[year]
    test = stats.spearmanr(cosines["stsb/test"], ALL.sets["stsb/test"].grades).statistic
    assert scores.mteb()["STSBenchmark"] == pytest.approx(test, abs=1e-4)
    assert set(scores.mteb()) == {"STS12", "STS13", "STS14", "STS15", "STS16", "STS17/en-en", "STS17/en-ar",
                                  "STSBenchmark"}  # fmt: skip


def test_every_sentence_is_encoded_once_and_once_more_for_the_time():
    model = Words()
    data = sample("2012/MSRpar", "2017/en-en")
    scores = score_sts(model, data)
    sentences = sum(2 * len(pairs) for pairs in data.sets.values())
    assert [len(call) for call in model.calls] == [40, 42, sentences]
    assert scores.sentences_per_second > 0


def test_equal_texts_tie_whatever_float32_makes_of_them():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(50, 300)).astype(np.float32)

    class Rounded:
        def encode(self, texts, **kwargs):
            rows = np.stack([vectors[int(text)] for text in texts])
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    texts = [str(i) for i in range(50)]
    assert set(pair_cosines(Rounded(), GradedPairs("x", texts, texts, [0.0] * 50))) == {1.0}


def test_constant_and_broken_scores_are_reported_not_averaged():
    data = sample(*keys("2012"), "2017/en-en")
    good = score_sts(Words(), data)
    grades = good.sets["2012/MSRvid"].grades
    bad = ModelScores(
        good.sets | {"2012/MSRvid": SetScores(np.ones(len(grades)), grades)}, good.years, good.sentences_per_second
    )
    assert math.isnan(bad.papers()["2012"]) and bad.sets["2012/MSRvid"].undefined == "constant"
    bootstrap = Bootstrap({"good": good, "bad": bad}, 50)
    results = {"good": sts_result(good, "good", bootstrap), "bad": sts_result(bad, "bad", bootstrap, "good")}
    parts = list(sts_report(StsRun(results, resamples=50)))
    text = "\n".join(parts)
    assert "undefined (constant on MSRvid)" in text and "| constant |" in text and "nan" not in text.lower()
    (compared,) = (part for part in parts if "bad against good" in part)
    assert "| mean 2012 | undefined | - | undefined |" in compared
    of_set = results["bad"].sets["2012/MSRvid"]
    assert (of_set.pearson, of_set.low, of_set.undefined) == (None, None, "constant")
    assert results["bad"].papers["2012"] is None and results["bad"].against.differences["2012"] is None

    same = score_sts(Words(constant=True), data)
    assert all(scores.undefined == "constant" for scores in same.sets.values())
    assert math.isnan(same.sentence_bert()["2012"]) and math.isnan(same.mteb()["STS17/en-en"])
    broken = score_sts(Words(broken=True), data)
    assert broken.sets["2012/MSRpar"].undefined == "NaN" and math.isnan(broken.papers()["2012"])
    assert "| NaN |" in "\n".join(sts_report(StsRun({"broken": sts_result(broken, "broken")})))
    assert math.isnan(correlation([1, 2, math.inf], [1, 2, 3]).pearson)


def test_bootstrap_of_sets_and_means():
    one = score_sts(Words(), ALL)
    noise = np.random.default_rng(5)
    better = {
        key: SetScores(found.cosines + 2 * (found.grades + noise.normal(size=len(found.grades))), found.grades)
        for key, found in one.sets.items()
    }
    other = ModelScores(better, one.years, 1.0)
    bootstrap = Bootstrap({"one": one, "other": other}, 300)
    assert bootstrap.interval("one", "stsb/dev") == Bootstrap({"one": one}, 300).interval("one", "stsb/dev")
    compared = bootstrap.compare("one", "other")
    average = compared["average without SMT"]
    assert average.difference == pytest.approx(
        other.papers()["average without SMT"] - one.papers()["average without SMT"]
    )
    assert average.low < average.difference < average.high and average.p_value == pytest.approx(2 / 301)
    assert {"2012", "2013 without SMT", "2017/ar-en", "stsb/dev"} <= set(compared)
    assert "average" not in compared and "2012/MSRpar" not in compared
    width = {label: found.high - found.low for label, found in compared.items()}
    assert width["average without SMT"] < width["2016"]  # more pairs, less doubt
    assert bootstrap.compare("one", "one")["2012"].p_value == 1
    direct = interval(resampled_pearson(one.sets["stsb/dev"].cosines, one.sets["stsb/dev"].grades, 300))
    found = bootstrap.interval("one", "stsb/dev")
    assert (found.low, found.high) == pytest.approx((direct.low, direct.high), abs=0.1)  # other draws


# --- tables


def test_every_table_names_its_protocol_and_has_the_published_rows():
    scores = score_sts(Words(), ALL)
    result = sts_result(scores, "m", Bootstrap({"m": scores}, 20))
    *tables, intervals = sts_report(StsRun({"m": result}, resamples=20))
    assert intervals == "The 95 % intervals are percentiles of 20 bootstrap resamples with seed 0."
    heads = [table.split("\n")[0] for table in tables]
    assert sum("papers' protocol" in head for head in heads) == 5 + 1 + 1
    assert sum("Sentence-BERT's protocol" in head for head in heads) == 1
    assert sum("mteb's protocol" in head for head in heads) == 1
    assert any("encoded a second time, in one call" in table for table in tables)
    papers = next(table for table in tables if "mean over the years" in table)
    head = papers.split("\n")[2].split(" | ")
    row = next(line for line in papers.split("\n") if line.startswith("| P-SP (published, EMNLP 2022)")).split(" | ")
    cells = dict(zip(head, row, strict=True))
    assert (cells["2012"], cells["2013"], cells["2013 without SMT"], cells["average"]) == ("68.7", "64.7", "-", "74.6")
    assert (cells["all sets"], cells["all sets without SMT |"]) == ("-", "- |")
    acl = next(line for line in papers.split("\n") if line.startswith("| SP 20k, 2M bitext (published, ACL 2019)"))
    cells = dict(zip(head, acl.split(" | "), strict=True))
    assert (cells["average"], cells["all sets"]) == ("-", "71.0"), "its mean is over sets, not over years"
    ours = dict(
        zip(head, next(line for line in papers.split("\n") if line.startswith("| m ")).split(" | "), strict=True)
    )
    assert (ours["2013"], ours["average"]) == ("-", "-")
    assert ours["2013 without SMT"] == hundredths(scores.papers()["2013 without SMT"])
    tracks = next(table for table in tables if "STS 2017" in table and "\\" in table)
    assert "| P-SP 1024d (published, EMNLP 2022) | - | 78.3\\78.4 |" in tracks


def test_published_rows_agree_with_themselves():
    for row in benchmark.ENGLISH_STS + benchmark.CONCATENATED_STS:
        years = [row.scores[year] for year in YEARS if year in row.scores]
        if years:
            assert np.mean(years) == pytest.approx(row.scores["average"], abs=0.0011)
    for row in tatoeba.PUBLISHED:
        assert np.mean([row.scores[key] for key in ("ara", "deu", "spa", "fra", "rus", "tur")]) == pytest.approx(
            row.scores["average"], abs=0.0011
        )
    tracks = {row.label: row for row in benchmark.STS_2017}
    assert tracks["P-SP 1024d (published, EMNLP 2022)"].spearman["es-en"] == pytest.approx(0.778)
    random = tracks["SP 20k, random (published, ACL 2019)"].scores
    assert (random["es-es"], random["es-en"], random["en-en"]) == (0.688, 0.065, 0.67)
    (by_text,) = (row for row in benchmark.STS_BY_TEXT if row.model == "SP 20k")
    assert [row.scores["all sets"] for row in benchmark.ALL_SETS_STS] == list(by_text.scores.values())
    assert sum(hard.PUBLISHED_PAIRS[key] for key in ("hard-low-10", "hard-high-10")) == 231


def test_markdown_tables():
    assert markdown_table(["a", "b"], [["x|y", "1\n2"]]) == "| a | b |\n| --- | ---: |\n| x\\|y | 1 2 |"
    with pytest.raises(EvaluationError, match="row 2 has 1 cells under a head of 2"):
        markdown_table(["a", "b"], [["1", "2"], ["3"]])
    assert [hundredths(value) for value in (0.7464, None, math.nan)] == ["74.6", "-", "-"]


# --- the command


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory):
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
    from st_paragram.learning.models import directory as model_directory
    from st_paragram.learning.models.sentence_transformers_encoder import pipeline
    from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

    words = [f"{one}{two} {three}" for one in "abcdxy" for two in "abcdxy" for three in "abcdxy"]
    vocabulary = SentencePieceTokenizer(train_vocabulary(words, size=20))
    path = tmp_path_factory.mktemp("models") / "tiny"
    return model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 8)), path)


def test_the_command_scores_chosen_sets(model_directory, tmp_path, capsys):
    for info in select_sets(["2012", "2017/en-en"]):
        write_tsv(tmp_path / f"sts{info.benchmark}" / f"{info.stems[0]}.tsv", ROWS * 5)

    def run(*options):
        status = main(["evaluate", str(model_directory), *map(str, options), "--benchmarks", "sts"])
        return status, *capsys.readouterr()

    file = tmp_path / "out" / "sts.json"
    options = ("--sets", "2012", "2017", "--untrained", "--compare", "--json", file)
    status, output, _ = run("--data", tmp_path, *options)
    assert status == 0 and "untrained against" in output and "- 2017/ar-ar is missing" in output
    record = json.loads(file.read_text())
    results = record["run"]["models"][str(model_directory)]
    assert record["benchmark"] == "sts" and record["run"]["notes"]
    assert results["papers"]["average"] is None
    of_set = results["sets"]["2012/MSRpar"]
    assert set(of_set) == {"pairs", "pearson", "spearman", "low", "high", "undefined"} and of_set["pairs"] == 20
    assert of_set["low"] <= of_set["pearson"] <= of_set["high"]
    assert record["run"]["models"]["untrained"]["against"]["model"] == str(model_directory)

    for options, reason in (
        (("--data", tmp_path, "--sets", "2011"), "st-paragram evaluate: '2011' is not an STS benchmark"),
        (("--sets", "2012"), "st-paragram evaluate: no data; give --data DIR"),
        (("--data", tmp_path, "--compare"), "st-paragram evaluate: --compare needs two models, or --untrained"),
    ):
        status, _, errors = run(*options)
        assert status == 1 and errors.startswith(reason) and errors.count("\n") == 1
