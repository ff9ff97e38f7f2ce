"""The benchmark of generative models: what it reads, keeps and prints."""

import sys
import time

import pytest
import yaml
from harness.families import generative
from harness.families.encoders import STS
from harness.families.generative import GenerativeRun, Inputs, read_models, run_models
from harness.processes import Run, anonymous_kib
from reports.generative import generative_tables, plot_generative
from support import forked, user_process
from support.data import make_pairs

from st_paragram.errors import SettingsError
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS
from st_paragram.tools.evaluation.sts.sts_files import StsData
from st_paragram.tools.evaluation.translations import Translations


@pytest.fixture
def inputs(tmp_path):
    """Twenty pairs of each set of STS 2012-2016, one of 2017, and translations."""
    first, second = zip(*make_pairs(20), strict=True)
    keys = [info.key for year in ("2012", "2013", "2014", "2015", "2016") for info in BENCHMARKS[year].sets]
    keys = [key for key in keys if key != "2013/SMT"] + ["2017/es-en", "2017/ar-ar"]
    pairs = GradedPairs("made", tuple(first), tuple(second), tuple(float(n % 6) for n in range(20)))
    text = tmp_path / "pairs.tsv"
    text.write_text("".join(f"{a}\t{b}\n" for a, b in make_pairs(200)), encoding="utf-8")
    tatoeba = [Translations("spa", list(first), list(second))]
    return Inputs("es", text, StsData(dict.fromkeys(keys, pairs), {}, ()), tatoeba)


def watched(folder):
    """`watch` for a process that starts at once."""

    def watch(command):
        assert command[:3] == [sys.executable, "-m", "st_paragram.cli.main"]
        started, peak = time.perf_counter(), 0
        process = forked.start(user_process.run_command, command[3:], folder=folder)
        while process.is_alive():
            peak = max(peak, anonymous_kib(process.pid))
            time.sleep(0.05)
        forked.wait([process], folder)
        return Run(forked.said(process, folder), time.perf_counter() - started, peak / 2**10)

    return watch


@pytest.mark.slow
def test_models_are_trained_once_by_commands_and_scored(tmp_path, inputs, monkeypatch):
    monkeypatch.setattr(generative, "watch", watched(tmp_path))
    config = tmp_path / "models.yaml"
    base = {"dim": 16, "heads": 2, "latent_dim": 8, "epochs": 1, "batch_tokens": 300, "device": "cpu"}
    config.write_text(yaml.safe_dump({"base": base, "models": {"BGT": {}}}))
    models = read_models(config)
    runs = list(run_models(models, [1], inputs, tmp_path / "kept"))
    assert [run.name for run in runs] == ["BGT", "BGT / en", "BGT / es"]
    assert runs[0].seconds > 0 and runs[0].peak_mb > 0 and runs[0].history and not runs[1].history
    assert {STS, "2017/es-en", "Hard+", "Hard-", "tatoeba/spa"} <= set(runs[0].scores)
    inputs.store.unlink()  # nothing is trained or scored again
    assert list(run_models(models, [1], inputs, tmp_path / "kept")) == runs


def test_a_configuration_of_another_form_is_refused(tmp_path):
    path = tmp_path / "models.yaml"
    path.write_text("models: 3\n")
    with pytest.raises(SettingsError, match=r"expected `base: \{...\}` and `models"):
        read_models(path)


def test_tables_have_means_over_seeds_and_the_papers_rows(tmp_path):
    history = [{"step": 50, "kl_semantic": 9.0, "active_units": 8, "translation": 70.0}]

    def run(name, seed, score, **more):
        return GenerativeRun(name, seed, {STS: score, "2017/es-en": score, "2017/ar-ar": 0.5}, **more)

    costs = {"seconds": 60.0, "pairs_per_second": 100.0, "pieces_per_second": 2000.0, "history": history}
    runs = [run("BGT", 1, 0.5, **costs), run("BGT / en", 1, 0.1, seconds=60.0), run("BGT", 2, 0.6, **costs)]
    english, across, cost = generative_tables(runs, "es")[1::2]
    assert "| BGT | 55.0 (50.0 - 60.0) | - | - |" in english and "| *BGT, paper* | *73.1* |" in english
    assert "es-en" in across and "ar-ar" not in across
    assert "| BGT | 60 (60 - 60) | 100 (100 - 100) | 2000 (2000 - 2000) |" in cost and "BGT / en" not in cost
    plot_generative(runs, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
