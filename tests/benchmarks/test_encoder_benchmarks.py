"""The benchmarks of encoders and of languages: what they read, count, keep and print."""

import itertools
import json
import math

import pytest
import yaml
from harness.encoder_runs import STS, STS_SETS, EncoderRun, Text, read_encoders, run_encoders
from harness.language_runs import LanguageRun, rank_correlation, run_languages, same_english, uriel_distances
from reports.encoders import encoders_tables
from reports.languages import correlation_table, language_table, plot_languages
from scipy.stats import spearmanr
from support.data import make_pairs

from st_paragram.core.tokenizers.bilingual import Sharing
from st_paragram.errors import SettingsError, TextError
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS
from st_paragram.tools.evaluation.sts.sts_files import StsData


@pytest.fixture
def data():
    """All sets of STS 2012-2016 but SMT, and one of 2017, with eight pairs each."""
    first, second = zip(*make_pairs(8), strict=True)
    keys = [info.key for year in ("2012", "2013", "2014", "2015", "2016") for info in BENCHMARKS[year].sets]
    keys = [key for key in keys if key != "2013/SMT"] + ["2017/en-en"]
    pairs = GradedPairs("made", tuple(first), tuple(second), tuple(float(n % 4) for n in range(8)))
    return StsData(dict.fromkeys(keys, pairs), {}, ())


def write(path, pairs):
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return path


def test_encoders_are_trained_once_and_tables_have_all_rows(tmp_path, data):
    config = tmp_path / "encoders.yaml"
    base = {"dim": 8, "epochs": 1, "batch_size": 16, "device": "cpu"}
    encoders = {"SP": {"encoder": "sp", "vocab_size": 150}, "Word": {"encoder": "word"}}
    config.write_text(yaml.safe_dump({"base": base, "encoders": encoders}))
    text = Text.parse(["bitext", "xx", "200", str(write(tmp_path / "p.tsv", make_pairs(300)))])
    found = [
        list(run_encoders(read_encoders(config), [text], [1, 2], data, tmp_path / "parts", untrained=True))
        for _ in range(2)
    ]
    assert found[0] == found[1] and len(list((tmp_path / "parts").iterdir())) == 8
    assert [(run.encoder, run.text, run.pairs) for run in found[0][:4]] == [
        ("SP", "random", 0),
        ("SP", "bitext", 200),
        ("Word", "random", 0),
        ("Word", "bitext", 200),
    ]
    assert all(-1 <= run.scores[STS] <= 1 and "2017/en-en" in run.scores for run in found[0])
    years, sets = encoders_tables(found[0])[1:4:2]
    assert "ACL 2019" in sets and "ACL 2019" not in years, "the paper's mean is over all sets"
    assert all(-1 <= run.scores[STS_SETS] <= 1 for run in found[0])
    tables = "\n".join(encoders_tables(found[0]))
    assert "| SP |" in tables and "| Word, random |" in tables and "*Trigram (published, ACL 2019)*" in tables
    assert "| *SP 20k (published, ACL 2019)* | - | *70.0* |" in tables


def test_means_and_spreads_by_hand():
    runs = [EncoderRun("SP", "bitext", seed, 10, {STS: value}, 2.0, 5.0) for seed, value in ((1, 0.5), (2, 0.6))]
    assert "| SP | 55.0 (50.0 - 60.0) |" in encoders_tables(runs)[1]
    undefined = [EncoderRun("SP", "bitext", 1, 10, {STS: None}, 2.0, 5.0)]
    assert "| SP | - |" in encoders_tables(undefined)[1]


@pytest.mark.parametrize("words", [["a", "es", "10"], ["a", "es", "ten", "f.tsv"], ["a"]])
def test_texts_of_another_form_are_refused(words):
    with pytest.raises(SettingsError, match="give NAME LANGUAGE PAIRS FILE"):
        Text.parse(words)


def test_configurations_of_another_form_are_refused(tmp_path):
    for text, message in (("encoders: [1]", "expected `base"), ("encoders: {a: {size: 3}}", "unknown|unexpected|size")):
        path = tmp_path / "c.yaml"
        path.write_text(text)
        with pytest.raises((SettingsError, TypeError), match=message):
            read_encoders(path)


def test_the_projects_own_encoders_are_readable():
    from encoders import CONFIG

    found = read_encoders(CONFIG)
    assert [of.training.encoder for of in found.values()] == ["sp", "trigram", "word", "blstm"]
    assert found["BLSTM-SP 20k"].training.scramble == 0.3
    short = read_encoders(CONFIG.with_name("encoders_short.yaml"))
    assert all(of.training.learning_rate == 0.02 for of in short.values())


def test_rank_correlation_by_hand():
    """Four items: 24 orders; ranks 1 2 3 4 against 1 2 4 3 have rho 0.8, and 8 orders are as far from 0."""
    found = rank_correlation([10, 20, 30, 40], [1, 2, 9, 4])
    orders = list(itertools.permutations(range(4)))
    rhos = [1 - 6 * sum((a - b) ** 2 for a, b in enumerate(order)) / 60 for order in orders]
    assert (found.rho, found.n) == (pytest.approx(0.8), 4)
    assert found.p == pytest.approx(sum(abs(rho) >= 0.8 - 1e-9 for rho in rhos) / 24)


def test_rank_correlation_with_ties_and_of_many():
    x, y = [1, 2, 2, 3, 5, 4, 7], [2, 1, 3, 3, 6, 5, 6]
    assert rank_correlation(x, y).rho == pytest.approx(spearmanr(x, y).statistic)
    many = rank_correlation(range(30), [n % 7 for n in range(30)])
    assert many.rho == pytest.approx(spearmanr(range(30), [n % 7 for n in range(30)]).statistic)
    assert math.isclose(many.p, spearmanr(range(30), [n % 7 for n in range(30)]).pvalue, abs_tol=0.05)


def test_only_english_that_all_languages_have_is_trained_on(tmp_path):
    pairs = make_pairs(150, repeat_every=10**9)
    first = write(tmp_path / "a.tsv", pairs[:140])
    second = write(tmp_path / "b.tsv", [(a, b.upper()) for a, b in reversed(pairs[10:])])
    files = same_english({"es": str(first), "fr": str(second)}, tmp_path)
    rows = [files[language].read_text().splitlines() for language in ("es", "fr")]
    assert [row.split("\t")[0] for row in rows[0]] == [row.split("\t")[0] for row in rows[1]]
    assert len(rows[0]) == len({a for a, _ in pairs[10:140]})
    with pytest.raises(TextError, match="English sentences that all of es, fr have"):
        same_english({"es": str(first), "fr": str(write(tmp_path / "c.tsv", pairs[145:]))}, tmp_path)


def test_languages_are_trained_once_and_reported(tmp_path, data):
    pairs = make_pairs(130, repeat_every=10**9)
    files = {
        name: write(tmp_path / f"{name}.tsv", [(a, b + end) for a, b in pairs])
        for name, end in (("es", ""), ("fr", " ba"))
    }
    settings = TrainingSettings(dim=8, epochs=1, batch_size=16, device="cpu")
    sharings = [Sharing.STRING, Sharing.DISJOINT]
    runs = [list(run_languages(files, settings, 120, sharings, [1], data, tmp_path)) for _ in range(2)]
    assert runs[0] == runs[1] and [(run.language, run.sharing) for run in runs[0]] == [
        ("es", "string"),
        ("es", "disjoint"),
        ("fr", "string"),
        ("fr", "disjoint"),
    ]
    assert all(0 < run.overlap < 1 and run.pairs == 130 for run in runs[0])
    assert json.loads(next(tmp_path.glob("es.string.1.*.json")).read_text())["overlap"] == runs[0][0].overlap


def test_tables_of_languages_by_hand(tmp_path):
    runs = [
        LanguageRun(language, "string", seed, 9, overlap, sts + seed / 100)
        for language, overlap, sts in (("es", 0.2, 0.6), ("fr", 0.3, 0.7), ("tr", 0.1, 0.5))
        for seed in (1, 3)
    ]
    distances = {"featural": {"es": 0.4, "fr": 0.3, "tr": 0.5}}
    table = language_table(runs, distances)
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == ["| fr", "| es", "| tr"]
    assert "| fr | 0.300 | 0.300 | 72.0 (71.0 - 73.0) |" in table
    correlations = correlation_table(runs, distances)
    assert "| overlap | 100 (n = 3, p = 0.333) | *71.5* |" in correlations
    assert "| featural | -100 (n = 3, p = 0.333) | *-22.8* |" in correlations
    pytest.importorskip("matplotlib")
    plot_languages(runs, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_distances_of_languages():
    pytest.importorskip("urielplus")
    found = uriel_distances(["es", "ar"])
    assert set(found) == {"featural", "syntactic", "genetic", "geographic"}
    assert 0 < found["syntactic"]["es"] < found["syntactic"]["ar"] < 1
    with pytest.raises(SettingsError, match=r"xyz: URIEL\+ has no featural distance"):
        uriel_distances(["xyz"])
