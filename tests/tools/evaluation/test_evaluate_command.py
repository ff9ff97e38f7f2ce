"""The command evaluate on published benchmarks, and the runs of several models behind it."""

import gc
import json
import subprocess
import sys
import weakref

import pytest

from st_paragram.core.encoding import models
from st_paragram.tools.evaluation.benchmarks import benchmarks_in, run_benchmark
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.sts_sets import select_sets


def graded(pairs, start):
    return [(number % 6, *pair) for number, pair in enumerate(pairs[start : start + 20])]


@pytest.fixture(scope="module")
def data(tmp_path_factory, pairs, texts, write):
    folder, texts = tmp_path_factory.mktemp("eval"), texts[:40]
    for number, info in enumerate(select_sets(["2012", "2017/es-en", "stsb/dev"])):
        name = info.key.partition("/")[0].replace("20", "sts20")
        write(folder / name / f"{info.stem}.tsv", graded(pairs, 10 * number))
    write(folder / "tatoeba" / "spa-eng.tsv", [(text, text) for text in texts])
    for language in ("zh", "en"):
        rows = [(f"{language}-{number}", text) for number, text in enumerate(texts)]
        write(folder / "bucc2018" / f"zh-en.sample.{language}", rows)
    write(
        folder / "bucc2018" / "zh-en.sample.gold", [(f"zh-{n}", f"en-{n}") for n in range(0, 40, 2)]
    )
    return folder


IN_ORDER = """
import contextlib, io, json, sys
from st_paragram.cli.main import main
ended = []
for arguments in json.loads(sys.argv[1]):
    error = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
        try:
            status = main(["evaluate", *arguments])
        except SystemExit as end:
            status = end.code
    ended.append([status, error.getvalue(), "torch" in sys.modules])
print(json.dumps(ended))
"""


def test_averaging_models_and_refusals_need_no_torch(data, tiny, tmp_path):
    cases = (
        (("--help",), None),
        ((tiny, "--data", data), None),
        (
            ("p-sp-es", "--data", tmp_path / "none"),
            "none: no such folder; give a folder of evaluation data",
        ),
        (
            ("p-sp-es",),
            "no data; give --data DIR, --hub, or your own files, such as --translations FILE",
        ),
        (("p-sp-es", "--benchmarks", "sts"), "no data; give --data DIR"),
        (("p-sp-is", "--hub", "--benchmarks", "bucc"), "no model 'p-sp-is'"),
        (
            (tiny, "--hub", "--benchmarks", "bucc"),
            "bucc: the hub does not have the data; give --data DIR",
        ),
        (
            (tiny, "--data", data, "--benchmarks", "transfer"),
            "no transfer data; files are named like MR.tsv",
        ),
        (
            (tiny, "--data", data, "--benchmarks", "bucc", "--languages", "fr"),
            "no bucc data for fr (available: zh-en)",
        ),
        (
            ("p-sp-es", "--data", tmp_path),
            "no benchmark data; `st-paragram evaluate --help` describes",
        ),
    )
    words = json.dumps([list(map(str, arguments)) for arguments, _ in cases])
    done = subprocess.run([sys.executable, "-c", IN_ORDER, words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for (_, message), (status, errors, torch) in zip(cases, json.loads(done.stdout), strict=True):
        assert (status, torch) == (int(message is not None), False), errors
        if message:
            assert (
                message in errors
                and errors.startswith("st-paragram evaluate: ")
                and errors.count("\n") == 1
            )


def test_a_name_that_is_no_model_is_refused_before_anything_is_scored(
    data, tiny, evaluate, monkeypatch
):
    monkeypatch.setattr(models, "load_encoder", lambda name: pytest.fail("scored"))
    assert "no model 'no-such-model'" in evaluate(
        tiny, "no-such-model", "--data", data, refused=True
    )


def test_benchmarks_are_found_by_their_data(data, tmp_path, pairs, write):
    assert benchmarks_in(data) == ["sts", "hard-sts", "tatoeba", "bucc"]
    (tmp_path / "sts2017").mkdir()  # an empty folder is no data
    write(tmp_path / "stsb" / "en-dev.tsv", graded(pairs, 0))
    assert benchmarks_in(tmp_path) == ["sts"]
    write(tmp_path / "spa-eng.tsv", pairs[:3])  # a folder of Tatoeba itself
    assert benchmarks_in(tmp_path) == ["sts", "tatoeba"]


def test_everything_that_there_is_is_scored_and_written(data, tiny, evaluate):
    printed, scores = evaluate(tiny, "--data", data, "--untrained")
    assert list(dict.fromkeys(score.benchmark for score in scores)) == [
        "sts",
        "hard-sts",
        "tatoeba",
        "bucc",
    ]
    assert {score.model for score in scores} == {tiny, "untrained"}
    assert {(s.model, s.against) for s in scores if s.against} == {("untrained", tiny)}
    assert f"Differences from {tiny} x 100" in printed and "- 2017/ar-ar is missing" in printed
    assert "(published, " not in printed and "not the published test set: 2012/MSRpar, " in printed
    values = {(s.set, s.measure): s.value for s in scores if s.model == tiny}
    assert values["spa", "error"] == 0 and values["zh-en", "cosine recall"] == 1
    printed, _ = evaluate(tiny, "--data", data, "--benchmarks", "sts", "--sets", "2012")
    assert "2017" not in printed


def test_one_model_is_in_memory_at_a_time(data, tiny, monkeypatch):
    alive, load, others = weakref.WeakSet(), models.load_encoder, []

    def watched(name):
        others.append(len(alive))
        alive.add(loaded := load(name))
        return loaded

    monkeypatch.setattr(models, "load_encoder", watched)
    gc.disable()  # the collector must not happen to help
    try:
        scores, _ = run_benchmark("tatoeba", Request([tiny, f"{tiny}/", tiny], data=data))
    finally:
        gc.enable()
    assert (
        others == [0, 0] and {score.model for score in scores} == {tiny, f"{tiny}/"} and not alive
    )
