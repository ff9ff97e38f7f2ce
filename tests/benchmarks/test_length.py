"""The benchmark of time and memory by length: models and texts, what is fitted, what is printed, what is refused."""

import json
import sys
from types import SimpleNamespace

import length
import numpy as np
import pytest
from harness import length_runs
from harness.length_memory import Memory, peak_memory
from harness.length_models import ModelSizes, longest_text, texts_of, untrained_models
from harness.length_runs import LengthOptions, LengthRun, measure
from hypothesis import given
from hypothesis import strategies as st
from reports.length import exponent, length_tables, plot_lengths, upper_half
from support import forked

from st_paragram.errors import ParagramError, SettingsError
from st_paragram.learning.models.directory import load

TINY = ModelSizes(bag_dim=8, dim=8, filters=2, layers=1, heads=2, ffn_dim=8, keep_bag=True)
NAMES = ["p-sp", "muse-cnn", "muse-transformer"]
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def models(tmp_path_factory, vocabulary):
    return untrained_models(TINY, 12, tmp_path_factory.mktemp("models"), vocabulary)


@given(st.floats(-3, 3), st.floats(1e-3, 1e3), st.sets(st.integers(1, 4096), min_size=2))
def test_the_exponent_of_a_power_is_found(power, factor, lengths):
    lengths = sorted(lengths)
    assert exponent(lengths, [factor * size**power for size in lengths]) == pytest.approx(power, abs=1e-6)


def test_an_exponent_needs_two_lengths_and_values_above_nothing():
    assert exponent([1, 2, 4], [3.0, 6.0, 24.0]) == pytest.approx(1.5)  # log2 of values: 0, 1, 3
    assert exponent([8], [1.0]) is None
    assert exponent([8, 16], [1.0, 0.0]) is None
    assert exponent([8, 16], [None, 1.0]) is None


def test_texts_have_exactly_as_many_tokens_for_every_kind_of_model(models):
    for directory in models:
        model = load(directory, device="cpu")
        texts = texts_of(model, 12, 3)
        assert texts == texts_of(model, 12, 3) and len(set(texts)) == 3
        features = model.preprocess(texts)
        if "cu_seq_lens_q" in features:
            assert features["cu_seq_lens_q"].tolist() == [0, 12, 24, 36]
        else:
            assert features["attention_mask"].sum(1).tolist() == [13, 13, 13]  # and an end of sentence


def test_the_longest_text_is_what_changes_an_embedding(models):
    limits = [longest_text(load(directory, device="cpu")) for directory in models]
    assert limits == [None, 12, 13]  # room for two ends, of which the transformer needs one
    for directory, limit in zip(models[1:], limits[1:], strict=True):
        model = load(directory, device="cpu")
        whole = " ".join(texts_of(model, limit, 2))
        words = whole.split()
        cut, more, less = model.encode([" ".join(words[: limit + n]) for n in (0, 1, -1)])
        np.testing.assert_allclose(cut, more, atol=1e-6)
        assert np.abs(cut - less).max() > 1e-4


def test_every_model_is_timed_at_every_length(models, monkeypatch):
    monkeypatch.setattr(length_runs, "_LEAST_SECONDS", 0.001)
    runs = measure(models, LengthOptions((8, 4), batch=2, rounds=3, devices=("cpu",), memory=False))
    assert [(run.model, run.length) for run in runs] == [(name, size) for name in NAMES for size in (4, 8)]
    for run in runs:
        assert len(run.seconds) == len(run.token_seconds) == 3
        assert min(run.token_time, run.time) > 0 and run.memory is None
    with pytest.raises(SettingsError, match=r"muse-cnn: texts of 14 tokens, of which the model reads 12; leave"):
        measure(models, LengthOptions((8, 14), devices=("cpu",)))


@needs_linux
def test_memory_is_what_a_call_adds_at_its_peak():
    class Hungry:
        """Takes a MiB and a half for every token of the first text."""

        device = type("Device", (), {"type": "cpu"})()

        def encode(self, texts, batch_size, show_progress_bar):
            assert batch_size == len(texts) == 2
            taken = np.ones((len(texts[0].split()), 3 << 18), np.uint16)
            return taken[:, 0]

        def state_dict(self):
            return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.length_memory.texts_of", lambda model, size, batch: ["a " * size] * batch)
        small, large = (peak_memory(Hungry(), size, 2) for size in (16, 48))
    assert small.loaded_mb > 20
    assert small.extra_mb == pytest.approx(24, abs=2) and large.extra_mb == pytest.approx(72, abs=2)


@pytest.mark.slow
@needs_linux
def test_memory_is_measured_in_a_process_of_its_own(models, tmp_path, monkeypatch):
    in_place = SimpleNamespace(run=lambda command, env, **_: forked.run(command, tmp_path, env))
    monkeypatch.setattr("harness.length_memory.subprocess", in_place)
    run = measure(models[:1], LengthOptions((12,), batch=2, rounds=1, devices=("cpu",)))[0]
    assert isinstance(run.memory, Memory) and run.memory.loaded_mb > 50 and 0 <= run.memory.extra_mb < 50


def test_a_process_that_fails_leaves_its_reason(models, monkeypatch, caplog):
    code = "import sys; print('more'); sys.exit('no\\nmemory')"
    monkeypatch.setattr("harness.length_memory._COMMAND", (sys.executable, "-c", code))
    monkeypatch.setattr(length_runs, "_LEAST_SECONDS", 0.001)
    assert measure(models[:1], LengthOptions((8,), rounds=1, devices=("cpu",)))[0].memory is None
    assert "p-sp, 8 tokens: memory not measured: status 1, memory" in caplog.text


def _run(model, size, ms, mb, device="cpu"):
    return LengthRun(model, device, size, [ms / 1000, ms / 250, ms / 2000], [0.0001], Memory(200.0, mb))


def _runs():
    linear = [_run("cnn", size, size / 10, size / 16) for size in (8, 16, 32, 64)]
    return linear + [_run("t5", size, size**2 / 100, size**2 / 64) for size in (8, 16, 32, 64)]


def test_tables_by_hand():
    times, memory, growth = length_tables(_runs(), batch=8)[1::2]
    assert times.split("\n")[0] == "| tokens | 8 | 16 | 32 | 64 |"
    assert "| cnn | 0.8 (0.1) | 1.60 (0.1) | 3.20 (0.1) | 6.40 (0.1) |" in times
    assert "| t5 | 1.00 | 4.00 (4.0 x) | 16.0 (4.0 x) | 64.0 (4.0 x) |" in memory
    assert "| cnn | 0.5 | 1.00 | 2.00 (2.0 x) | 4.00 (2.0 x) |" in memory  # half a megabyte is noise
    # from 16 to 64 tokens: 3 MB / 48 tokens / 8 texts = 8 KB; 60 MB: 160 KB, 20 times as much
    assert "| cnn | 1.00 | 1.00 | 6.40 | - | 8.00 | - | 200 |" in growth
    assert "| t5 | 2.00 | 2.00 | 41.0 | 6.40 | 160 | 20.0 | 200 |" in growth
    assert [run.length for run in upper_half(_runs())] == [16, 32, 64] * 2


def test_devices_have_rows_of_their_own_and_what_was_not_measured_a_dash(tmp_path):
    runs = [*_runs(), *(_run("t5", size, 1.0, 1.0, "cuda") for size in (8, 16, 32, 64))]
    runs[-1].memory = None
    _, memory, growth = length_tables(runs, batch=8)[1::2]
    assert "| t5, cuda | 1.00 | 1.00 (1.0 x) | 1.00 (1.0 x) | - |" in memory
    assert "| t5, cuda | 0.00 | - | 1.00 | - | - | - | - |" in growth  # not compared with a row of another device
    plot_lengths(runs, 8, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lengths": (8, 0)}, "lengths 8 0; give 1 or more"),
        ({"lengths": ()}, "lengths ; give"),
        ({"rounds": 0}, "rounds 0; give"),
        ({"batch": -1}, "batch -1; give"),
        ({"threads": 0}, "threads 0; give"),
    ],
)
def test_numbers_below_one_are_refused(changes, said):
    with pytest.raises(SettingsError, match=said):
        LengthOptions(**changes)


def test_the_script_prints_and_keeps_what_it_measured(models, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(length_runs, "_LEAST_SECONDS", 0.001)
    record, plot = tmp_path / "length.json", tmp_path / "length.png"
    options = ["--lengths", "4", "8", "--batch", "2", "--rounds", "2", "--devices", "cpu", "--no-memory"]
    arguments = ["length.py", *models, *options, "--json", str(record), "--plot", str(plot)]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr("os.environ", {})
    assert length.main() == 0
    assert "| muse-transformer |" in capsys.readouterr().out and plot.is_file()
    kept = json.loads(record.read_text())
    assert kept["options"]["lengths"] == [4, 8] and kept["machine"]["cores"] > 0
    assert [(run["model"], run["length"], len(run["seconds"])) for run in kept["runs"]][:2] == [
        ("p-sp", 4, 2),
        ("p-sp", 8, 2),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no models: give directories"),
        (["no-such-model"], "no-such-model"),
        (["m", "--lengths", "-8"], "lengths -8"),
    ],
)
def test_bad_input_is_refused_in_a_line(arguments, said, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["length.py", *arguments])
    monkeypatch.setattr("os.environ", {})
    with pytest.raises(ParagramError, match=said) as caught:
        length.main()
    assert "\n" not in str(caught.value)
