"""The benchmark of encoders: what it reads, counts, keeps and prints."""

import pytest
import yaml
from harness.families.encoders import STS, STS_SETS, EncoderRun, Text, read_encoders, run_encoders
from reports.encoders import encoders_tables
from support.data import make_pairs

from st_paragram.errors import SettingsError
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
    tables = "\n".join(encoders_tables(found[0]))
    assert "| SP |" in tables and "| Word, random |" in tables and "*Trigram (published, ACL 2019)*" in tables
    assert "| *SP 20k (published, ACL 2019)* | - | *70.0* |" in tables
    years, sets = encoders_tables(found[0])[1:4:2]
    assert "ACL 2019" in sets and "ACL 2019" not in years, "the paper's mean is over all sets"
    assert all(-1 <= run.scores[STS_SETS] <= 1 for run in found[0])


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
