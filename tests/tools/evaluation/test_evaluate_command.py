"""The command evaluate, and the runs of several models behind it."""

import gc
import json
import subprocess
import sys
import weakref
from dataclasses import replace

import pytest
from support.http_server import serving

from st_paragram.cli.main import main
from st_paragram.errors import SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation import fetch, models
from st_paragram.tools.evaluation.benchmarks import BENCHMARKS, benchmarks_in, report, run_types
from st_paragram.tools.evaluation.fetch import missing_tatoeba
from st_paragram.tools.evaluation.record import read_records
from st_paragram.tools.evaluation.sts.benchmark import run_sts
from st_paragram.tools.evaluation.sts.catalogue import select_sets
from st_paragram.tools.evaluation.sts.sts_files import find_sts


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")


def graded(pairs, start):
    return [(number % 6, *pair) for number, pair in enumerate(pairs[start : start + 20])]


@pytest.fixture(scope="module")
def data(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("eval")
    for number, info in enumerate(select_sets(["2012", "2017/es-en", "stsb/dev"])):
        name = "stsb" if info.benchmark == "stsb" else f"sts{info.benchmark}"
        write_rows(folder / name / f"{info.stems[0]}.tsv", graded(pairs, 10 * number))
    texts = list(dict.fromkeys(first for first, _ in pairs))[:40]
    write_rows(folder / "tatoeba" / "spa-eng.tsv", [(text, text) for text in texts])
    for language in ("zh", "en"):
        rows = [(f"{language}-{number}", text) for number, text in enumerate(texts)]
        write_rows(folder / "bucc2018" / f"zh-en.sample.{language}", rows)
    write_rows(folder / "bucc2018" / "zh-en.sample.gold", [(f"zh-{n}", f"en-{n}") for n in range(0, 40, 2)])
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary):
    untrained = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    return model_directory.save(untrained, tmp_path_factory.mktemp("models") / "tiny")


def run(*arguments):
    return main(["evaluate", *map(str, arguments)])


def without(name, monkeypatch):
    """Make a benchmark need a package that nobody has."""
    monkeypatch.setitem(BENCHMARKS, name, replace(BENCHMARKS[name], needs=("no_such_package", "eval")))


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


def in_a_process(commands):
    """Status and errors of each command, and whether torch was imported by then."""
    words = json.dumps([list(map(str, arguments)) for arguments in commands])
    done = subprocess.run([sys.executable, "-c", IN_ORDER, words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_help_and_refusals_need_no_torch(tmp_path):
    cases = (
        (("--help",), None),
        (("p-sp-es", "--data", tmp_path / "none"), "none: no such folder; give one of evaluation data, or --fetch"),
        (
            ("p-sp-es",),
            "no data; give --data DIR (with --fetch to fill it), --hub, or files of yours, such as --pairs FILE",
        ),
        (("p-sp-es", "--hub", "--fetch"), "no data; give --data DIR"),
        (("./p-sp-es", "--data", tmp_path), "./p-sp-es: no such model directory; check the path"),
        ((tmp_path / "m", "--data", tmp_path), "m: no such model directory"),
        (("p-sp-es", "--data", tmp_path, "--compare"), "--compare needs two models, or --untrained"),
        (("a", "b", "--data", tmp_path, "--compare", "--benchmarks", "bucc"), "--compare compares models on sts"),
        (("p-sp-es", "--data", tmp_path), "no data of a benchmark; `st-paragram evaluate --help` describes"),
    )
    ended = in_a_process(arguments for arguments, _ in cases)
    assert ended.pop(0) == [0, "", False]
    for (_, message), (status, errors, torch) in zip(cases[1:], ended, strict=True):
        assert (status, torch) == (1, False)
        assert message in errors and errors.startswith("st-paragram evaluate: ") and errors.count("\n") == 1


def test_a_name_that_is_no_model_is_refused_before_anything_is_scored(data, model, capsys, monkeypatch):
    monkeypatch.setattr(models, "load_encoder", lambda name: pytest.fail("scored"))
    assert run(model, "no-such-model", "--data", data, "--benchmarks", "sts") == 1
    assert "no model 'no-such-model'" in capsys.readouterr().err


def test_benchmarks_are_found_by_their_data(data, tmp_path, pairs):
    assert benchmarks_in(data) == ["sts", "hard-sts", "tatoeba", "bucc", "mteb"]
    write_rows(tmp_path / "stsb" / "en-dev.tsv", graded(pairs, 0))
    assert benchmarks_in(tmp_path) == ["sts"]
    write_rows(tmp_path / "spa-eng.tsv", pairs[:3])  # a folder of Tatoeba itself
    assert benchmarks_in(tmp_path) == ["sts", "tatoeba", "mteb"]


def test_everything_that_there_is_is_scored_and_recorded(data, model, tmp_path, capsys, monkeypatch):
    without("mteb", monkeypatch)
    file = tmp_path / "out" / "records.json"
    assert run(model, "--data", data, "--untrained", "--compare", "--json", file) == 0
    printed, errors = capsys.readouterr()
    left_out = 'mteb: left out; no_such_package is not installed; pip install "st_paragram[eval]"'
    assert [line for line in errors.split("\n") if "left out" in line] == [left_out]
    records = read_records(file)
    assert [record.benchmark for record in records] == ["sts", "hard-sts", "tatoeba", "bucc"]
    for record in records:
        assert list(record.run.models) == [str(model), "untrained"]
        for part in report(record.run):  # what is read back is what was printed
            assert part in printed
    sts, _, tatoeba, bucc = (record.run for record in records)
    assert sts.models["untrained"].against.model == str(model) and f"untrained against {model}" in printed
    assert "(published, " not in printed and "not the published test set: 2012/MSRpar, " in printed
    assert tatoeba.models[str(model)].languages["spa"].cosine.mean == 0
    assert list(bucc.headings) == ["zh-en", "zh-en half"]
    assert bucc.models[str(model)].languages["zh-en"].margins["cosine"].recall == 1


def test_mteb_scores_what_the_folder_has(data, model, tmp_path, capsys):
    pytest.importorskip("mteb")
    file = tmp_path / "mteb.json"
    assert run(model, "--data", data, "--benchmarks", "mteb", "--languages", "es", "en", "--json", file) == 0
    (record,) = read_records(file)
    tasks = record.run.models[str(model)].tasks
    expected = {"STS12": ["default"], "STS17": ["es-en"], "Tatoeba": ["spa-eng"]}
    assert {task: list(subsets) for task, subsets in tasks.items()} == expected
    assert record.run.notes.count("2017/ar-ar is missing") == 1
    assert all(revision.startswith("local-") for revision in record.run.revisions.values())
    assert "| Tatoeba | spa-eng | f1 | " in capsys.readouterr().out
    chosen = ("--benchmarks", "mteb", "--tasks", "Tatoeba", "--mteb-results", tmp_path / "mteb")
    assert run(model, "--data", data, *chosen) == 0
    assert "STS12" not in capsys.readouterr().out and list((tmp_path / "mteb").rglob("Tatoeba.json"))


def test_nothing_of_torch_is_loaded_for_a_mean_of_embeddings(data, model):
    command = (model, "--data", data, "--benchmarks", "sts", "hard-sts", "tatoeba", "bucc")
    ((status, errors, torch),) = in_a_process([command])
    assert (status, torch) == (0, False), errors


def test_a_missing_package_is_an_error_where_its_benchmark_was_asked_for(data, model, capsys, monkeypatch):
    without("tatoeba", monkeypatch)
    assert run(model, "--data", data, "--benchmarks", "sts", "tatoeba") == 1
    errors = capsys.readouterr().err
    assert (
        errors == 'st-paragram evaluate: tatoeba: no_such_package is not installed; pip install "st_paragram[eval]"\n'
    )


def test_what_the_hub_does_not_have_is_asked_for(model, capsys):
    assert run(model, "--hub", "--benchmarks", "bucc") == 1
    assert "bucc: its data is not read from the hub; give --data DIR" in capsys.readouterr().err


def test_pairs_and_languages_choose(data, model, capsys):
    assert run(model, "--data", data, "--benchmarks", "tatoeba", "--languages", "es", "en") == 0
    assert "| spa | 40 |" in capsys.readouterr().out
    for options, message in (
        (("tatoeba", "--languages", "de"), "no test set for deu; there are 1: spa"),
        (("bucc", "--pair", "de-en"), "no de-en.test.gold"),
    ):
        assert run(model, "--data", data, "--benchmarks", *options) == 1
        assert message in capsys.readouterr().err


def test_one_model_is_in_memory_at_a_time(data, model, monkeypatch):
    alive, load = weakref.WeakSet(), models.load_encoder
    others = []

    def watched(name):
        others.append(len(alive))
        alive.add(loaded := load(name))
        return loaded

    monkeypatch.setattr(models, "load_encoder", watched)
    gc.disable()  # the collector must not happen to help
    try:
        found = run_sts([str(model), f"{model}/", str(model)], find_sts(data, ["2012"]), resamples=0)
    finally:
        gc.enable()
    assert others == [0, 0] and list(found.models) == [str(model), f"{model}/"]
    assert not alive


def test_runs_refuse_what_cannot_be_compared(data, model):
    sets = find_sts(data, ["2012"])
    for options in ({"compare": True}, {"compare": True, "untrained": True, "resamples": 0}, {"seed": -1}):
        with pytest.raises(SettingsError, match=r"--compare|seed"):
            run_sts([str(model)], sets, **options)


# --- fetching


def test_languages_of_tatoeba_that_a_folder_lacks(tmp_path, data):
    files, folder = missing_tatoeba(tmp_path, ["es", "en", "tur"])
    names = ["tatoeba.spa-eng.spa", "tatoeba.spa-eng.eng", "tatoeba.tur-eng.tur", "tatoeba.tur-eng.eng"]
    assert [file.filename for file in files] == names and folder == tmp_path / "tatoeba"
    assert len(missing_tatoeba(tmp_path)[0]) == 14 and not missing_tatoeba(tmp_path, ["en"])[0]
    assert missing_tatoeba(data, ["es"]) == ([], data / "tatoeba")
    with pytest.raises(SettingsError, match="Tatoeba: --fetch has no fry, only ara, deu, spa"):
        missing_tatoeba(tmp_path, ["fry"])


def test_fetching_says_what_and_scores_it(tmp_path, model, pairs, capsys, monkeypatch):
    texts = [first for first, _ in pairs[:12]]
    with serving() as server:
        for language in ("spa", "eng"):
            path = f"/facebookresearch/LASER/main/data/tatoeba/v1/tatoeba.spa-eng.{language}"
            server.files[path] = "".join(f"{text}\n" for text in texts).encode()
        files = fetch.set_files
        monkeypatch.setattr(fetch, "set_files", lambda name, codes: files(name, codes, server.url))
        folder = tmp_path / "new"
        assert run(model, "--data", folder, "--fetch", "--benchmarks", "tatoeba", "--languages", "es") == 0
    printed, errors = capsys.readouterr()
    assert f"To be fetched into {folder / 'tatoeba'}:\ntatoeba v1\n  {server.url}/" in errors
    assert "CC BY 2.0 FR" in errors
    assert "| spa | 12 |" in printed


def test_what_cannot_be_fetched_says_where_it_is(tmp_path, model, data, capsys):
    assert run(model, "--data", tmp_path / "new", "--fetch", "--benchmarks", "sts") == 1
    assert "--fetch downloads only tatoeba; for STS give --hub" in capsys.readouterr().err
    (tmp_path / "tatoeba").mkdir()
    assert run(model, "--data", tmp_path, "--benchmarks", "sts") == 1
    assert "nothing of STS at all; expected e.g. sts2012/MSRpar.tsv" in (error := capsys.readouterr().err)
    assert "--hub reads the Hugging Face hub" in error and error.count("\n") == 1


def test_records_tell_the_command(data, model, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/st-paragram", "evaluate", str(model), "--data", "my eval"])
    assert run(model, "--data", data, "--benchmarks", "hard-sts", "--json", tmp_path / "r.json") == 0
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["command"] == f"st-paragram evaluate {model} --data 'my eval'"
    assert written["run"]["notes"][0].startswith("Hard+ holds pairs unlike in words")


def test_every_benchmark_has_its_parts():
    for name, kind in run_types().items():
        assert kind.benchmark == name
        module = BENCHMARKS[name].load()
        assert all(callable(part) for part in (module.has_data, module.run, module.report))


def test_an_empty_folder_of_sts_is_no_data(tmp_path):
    (tmp_path / "sts2017").mkdir()
    (tmp_path / "tatoeba").mkdir()
    (tmp_path / "tatoeba" / "spa-eng.tsv").write_text("hola\thello\n", encoding="utf-8")
    assert benchmarks_in(tmp_path) == ["tatoeba", "mteb"]
