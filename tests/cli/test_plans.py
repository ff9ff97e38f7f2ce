"""`--plan`: what would be read, made and needed; what the run refuses is refused, and nothing is left behind."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from st_paragram.cli.main import main
from st_paragram.core.text.parallel import TextSource
from st_paragram.tools.options.plans import planned_lines, planned_pairs

SCRIPT = """
import contextlib, io, json, sys
from st_paragram.cli.main import main
plans = []
for command in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main([*command, "--plan"])
    plans.append([status, out.getvalue(), "torch" in sys.modules])
print(json.dumps(plans))
"""
SIDES = ["--source", "en.txt", "--target", "es.txt"]
SLURM = ["--executor", "slurm", "--ranks", "64", "--workers", "32"]
SLURM += ["--executor-option", "partition=cpu", "--executor-option", "time=9"]
NEW = ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "new.h5"]
# Command, and lines of its plan.
PLANS = {
    "prepare": (
        [*NEW, "--rejects", "dropped", "--keep-text", "kept"],
        [
            "reads  pairs.tsv: 3.6 kB, 60 pairs",
            "makes  new.h5: the pair store",
            "dropped: the rows that were dropped",
            "kept: the text of the pairs, a.txt and b.txt",
        ],
    ),
    "prepare by slurm": (
        ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "new.h5", *SLURM],
        ["64 tasks for each stage, 32 at once, by slurm"],
    ),
    "bitext": (
        ["bitext", "--lang", "es", "--corpus", "Tanzil", "--text", "pairs.tsv", "--folder", "raw"],
        [
            "download parallel text and prepare a pair store",
            "raw/Tanzil-v1.en-es.txt.zip: to be downloaded, https://",
            "makes  data/en-es.h5: the pair store",
            "data/en-es.work: results of the stages, kept",
        ],
    ),
    "download": (
        ["download", "--lang", "es", "--corpus", "Tanzil", "--folder", "raw"],
        ["makes  raw/Tanzil-v1.en-es.txt.zip: Tanzil v1, translations of the Quran", "time depends on the network"],
    ),
    "download sets": (
        ["download", "--sets", "sts"],
        ["STS2013-en-test.zip", "the sets of STS", "without 2012 and stsb"],
    ),
    "paranmt": (
        ["paranmt", "--text", "pairs.tsv", "--model", "p-sp-mini"],
        ["makes  data/en-en.h5", "p-sp-mini: a model of 256 components, 6.3 MB", "overlap and paraphrase_score"],
    ),
    "mix": (
        ["mix", "pairs.tsv", "again.tsv", "--lang", "es", "--output", "new.yaml"],
        ["reads  pairs: pairs.tsv: 3.6 kB, 60 pairs", "makes  new.yaml: the mixture", "9 trainings of 1 epochs"],
    ),
    "pivot": (
        ["pivot", "--text", "en-es:pairs.tsv", "--output", "new.tsv", "--json", "old"],
        ["makes  new.tsv", "old, which exists and is replaced", "on disk"],
    ),
    # 60 lines of 256 numbers of 2 bytes
    "embed": (
        ["embed", "en.txt", "--model", "p-sp-mini", "--output", "new.npy", "--dtype", "float16"],
        ["reads  en.txt", "with   256 components, float16", "31 kB on disk"],
    ),
    "embed sharded": (
        ["embed", "en.txt", "es.txt", "--sharded", "--output", "new", "--workers", "2", "--dim", "100"],
        ["a folder of shards of at most 100,000 lines, npy", "100 components", "2 processes", "48 kB on disk"],
    ),
    "score": (
        ["score", "pairs.tsv", "--output", "new.tsv", "--background", "self", "--sort"],
        ["best first", "margin distance, 4 neighbors", "index Flat", ".new.tsv.work"],
    ),
    "score by cosine": (["score", "pairs.tsv", "--output", "new.tsv"], ["with   cosine"]),
    "dedupe": (
        ["dedupe", "en.txt", "--output", "new.txt", "--removed", "removed.tsv"],
        ["reads  en.txt", "60 lines", "makes  new.txt: the lines", "removed.tsv", "20 keys of 7 minimum hashes"],
    ),
    "dedupe pairs": (
        ["dedupe", "pairs.tsv", "--pairs", "--output", "-", "--method", "exact", "embeddings", "--sides", "either"],
        ["60 pairs", "makes  standard output: the pairs", "sides: either", "cosine 0.95, 16 neighbors", "index Flat"],
    ),
    "mine": (
        ["mine", *SIDES, "--output", "new.tsv", "--memory", "2G", "--threshold", "0.1", "--work", "kept"],
        [
            "index Flat (everything is compared)",
            "2G of memory at most",
            "threshold 0.1",
            "kept: results of the stages, kept",
        ],
    ),
    "mine paraphrases": (["mine", "--paraphrase", "en.txt", "--output", "new.tsv"], ["mine paraphrases"]),
    "mine documents": (
        ["mine", "--documents", "list", "--output", "new.tsv"],
        ["reads  list: 1 pair of documents with 60 and 60 sentences"],
    ),
    "align": (["align", *SIDES, "--output", "new.tsv"], ["align within pairs of documents", "margin ratio"]),
    "index": (["index", "en.txt", "--output", "new"], ["makes  new: an index of sentences", "index Flat"]),
    "evaluate": (
        ["evaluate", "p-sp-mini", "--data", "eval", "--benchmarks", "tatoeba", "--json", "new.json"],
        ["benchmarks: tatoeba", "makes  tables, printed", "new.json: the results"],
    ),
    "evaluate, fetching": (
        ["evaluate", "p-sp-mini", "--data", "none", "--fetch", "--benchmarks", "tatoeba", "--languages", "es"],
        ["tatoeba.spa-eng.eng", "none: what is fetched"],
    ),
    "evaluate own data": (
        ["evaluate", "p-sp-mini", "--pairs", "pairs.tsv", "--json", "new.json"],
        ["reads  p-sp-mini: a model", "pairs.tsv: 3.6 kB", "makes  tables, printed", "your own data: 95 % intervals"],
    ),
    "evaluate all": (["evaluate", "p-sp-mini", "--data", "eval"], ["benchmarks: tatoeba"]),
    "tasks": (
        ["tasks", "--kind", "nli", "--lang", "en", "nli.jsonl", "--output", "nli"],
        ["convert nli to task rows", "reads  nli.jsonl: 3 bytes", "makes  nli/en.tsv: the rows"],
    ),
    "towers": (
        ["towers", "p-sp-mini", "--qa", "qa", "--output", "new", "--epochs", "2"],
        ["train towers over p-sp-mini", "reads  qa: qa/en.tsv", "makes  new: a model directory", "epochs 2"],
    ),
}
if importlib.util.find_spec("datatrove") is None:
    del PLANS["prepare by slurm"]
# Commands that are refused, by a run and by a plan with the same words.
REFUSED = [
    ["prepare", "--lang", "es", "--text", "none.tsv", "--output", "new.h5"],
    ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "old"],
    ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "new.h5", "--force", "all"],
    ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "en.txt/new.h5"],
    ["prepare", "--lang", "es", "--text", "en.txt", "--output", "new.h5"],
    ["prepare", "--lang", "es", "--output", "new.h5"],
    ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "new.h5", "--workers", "0"],
    ["bitext", "--lang", "es", "--no-download"],
    ["bitext", "--lang", "es", "--corpus", "Nothing"],
    ["bitext", "--lang", "es", "--no-download", "--text", "none.tsv"],
    ["download", "--lang", "es", "--corpus", "Tanzil", "--folder", "en.txt"],
    ["download", "--lang", "es", "--parallel", "0"],
    ["download"],
    ["paranmt", "--text", "pairs.tsv", "--output", "old"],
    ["paranmt", "--text", "pairs.tsv"],
    ["paranmt", "--text", "pairs.tsv", "--output", "new.h5", "--model", "nobody"],
    ["prepare", "--lang", "es", "--sources", "none.yaml", "--output", "new.h5"],
    ["mix", "pairs.tsv", "none.tsv", "--lang", "es", "--output", "new.yaml"],
    ["mix", "pairs.tsv", "again.tsv", "--lang", "es", "--output", "old"],
    ["pivot", "--text", "en-es:none.tsv", "--output", "new.tsv"],
    ["pivot", "--text", "en-es:pairs.tsv", "--output", "."],
    ["embed", "none.txt", "--output", "new.npy"],
    ["embed", "empty.txt", "--output", "new.npy"],
    ["embed", "en.txt", "--output", "old"],
    ["embed", "en.txt", "--output", "new.npy", "--dim", "300"],
    ["embed", "en.txt", "--output", "new.npy", "--dtype", "int8"],
    ["embed", "en.txt", "--sharded", "--output", "new", "--dim", "300"],
    ["embed", "en.txt", "--output", "new.npy", "--model", "nobody"],
    ["score", "none.tsv", "--output", "new.tsv"],
    ["score", "en.txt", "--output", "new.tsv"],
    ["score", "pairs.tsv", "--output", "new.tsv", "--background-source", "eval", "--background-target", "es.txt"],
    ["dedupe", "none.txt", "--output", "new.txt"],
    ["dedupe", "empty.txt", "--output", "new.txt"],
    ["dedupe", "empty.txt", "--pairs", "--output", "new.txt"],
    ["dedupe", "en.txt", "--pairs", "--output", "new.txt"],
    ["dedupe", "en.txt", "--output", "old"],
    ["dedupe", "en.txt", "--output", "new.txt", "--method", "embeddings", "--model", "nobody"],
    ["dedupe", "en.txt", "--output", "new.txt", "--method", "embeddings", "--index", "Nonsense"],
    ["mine", *SIDES, "--output", "old"],
    ["mine", *SIDES, "--output", "new.tsv", "--model", "nobody"],
    ["mine", *SIDES, "--output", "new.tsv", "--force", "all"],
    ["mine", "--documents", "list", "--output", "new.tsv", "--force", "all"],
    ["mine", "--documents", "en.txt", "--output", "new.tsv"],
    ["mine", "--source", "en.txt", "--target", "empty.txt", "--output", "new.tsv"],
    ["mine", *SIDES, "--output", "new.tsv", "-k", "70"],
    ["mine", *SIDES, "--output", "new.tsv", "--ids"],
    ["mine", *SIDES, "--output", "new.tsv", "--index", "Nonsense"],
    ["score", "pairs.tsv", "--output", "new.tsv", "--background-source", "empty.txt", "--background-target", "es.txt"],
    ["index", "empty.txt", "--output", "new"],
    ["align", "--source", "en.txt", "--target", "empty.txt", "--output", "new.tsv"],
    ["index", "en.txt", "--output", "old"],
    ["index", "en.txt", "--output", "new", "--answers"],
    ["evaluate", "p-sp-mini", "--data", "none"],
    ["evaluate", "p-sp-mini", "--data", "empty"],
    ["evaluate", "nobody", "--data", "eval"],
    ["evaluate", "p-sp-mini", "--pairs", "none.tsv"],
    ["evaluate", "p-sp-mini", "--queries", "en.txt"],
    ["tasks", "--kind", "nli", "--lang", "en", "none.jsonl", "--output", "nli"],
    ["tasks", "--kind", "nli", "--lang", "english!", "nli.jsonl", "--output", "nli"],
    ["towers", "p-sp-mini", "--output", "new"],
    ["towers", "none", "--qa", "qa", "--output", "new"],
    ["towers", "p-sp-mini", "--nli", "qa/en.tsv", "--output", "new"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, pairs):
    """A folder with all that the commands name."""
    folder = tmp_path_factory.mktemp("plans")
    (folder / "en.txt").write_text("".join(f"{one}\n" for one, _ in pairs[:60]))
    (folder / "es.txt").write_text("".join(f"{other}\n" for _, other in pairs[:60]))
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:60]))
    (folder / "again.tsv").write_text((folder / "pairs.tsv").read_text())
    (folder / "list").write_text("en.txt\tes.txt\n")
    (folder / "empty.txt").write_text("")
    (folder / "old").write_text("old")
    (folder / "nli.jsonl").write_text("{}\n")
    (folder / "empty").mkdir()
    (folder / "qa").mkdir()
    (folder / "qa" / "en.tsv").write_text("who\tshe\n")
    (folder / "eval" / "tatoeba").mkdir(parents=True)
    (folder / "eval" / "tatoeba" / "spa-eng.tsv").write_text("uno\tone\ndos\ttwo\n")
    return folder


def contents(folder):
    """All files of a folder, with what is in them."""
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def planned(folder):
    """The plans of all commands, made by one process, and whether torch was imported by then."""
    before = contents(folder)
    commands = [command for command, _ in PLANS.values()]
    given = [sys.executable, "-c", SCRIPT, json.dumps(commands)]
    done = subprocess.run(given, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert contents(folder) == before
    return dict(zip(PLANS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_says_what_would_be_done_and_does_nothing(planned, name):
    status, text, torch = planned[name]
    assert status == 0 and not torch
    for part in PLANS[name][1]:
        assert part in text
    titles = [line[:7].strip() for line in text.split("\n")[1:] if line[:1].strip()]
    assert titles == ["reads", "makes", "with", "needs"]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_a_plan_refuses_what_the_run_refuses(folder, monkeypatch, capsys, command):
    monkeypatch.chdir(folder)
    before = contents(folder)
    assert main([*command, "--plan"]) == 1
    assert contents(folder) == before
    plan = capsys.readouterr()
    assert main(command) == 1
    refusal, said = plan.err.strip().split("\n")[-1], capsys.readouterr().err.strip().split("\n")
    assert plan.out == "" and refusal == said[-1]


def test_an_output_that_a_kept_work_folder_has_made_is_not_refused(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    mined = ["mine", *SIDES, "--output", str(tmp_path / "m.tsv"), "--work", str(tmp_path / "work")]
    store = ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", str(tmp_path / "s.h5"), "--vocab-size", "60"]
    for command in (mined, [*store, "--character-coverage", "1", "--work", str(tmp_path / "of-the-store")]):
        assert main(command) == 0
        before = contents(tmp_path)
        assert main([*command, "--plan"]) == 0
        assert "which has results of an earlier run, kept" in capsys.readouterr().out
        assert contents(tmp_path) == before


def test_no_model_is_fetched_from_the_hub(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    output = str(tmp_path / "new")
    for command in (
        ["embed", "en.txt", "--output", output],
        ["score", "pairs.tsv", "--output", output],
        ["mine", *SIDES, "--output", output],
        ["align", *SIDES, "--output", output],
        ["index", "en.txt", "--output", output],
        ["paranmt", "--text", "pairs.tsv", "--output", output],
    ):
        assert main([*command, "--model", "owner/name", "--plan"]) == 0
        assert "owner/name: a model of the Hugging Face hub" in capsys.readouterr().out
    assert main(["evaluate", "owner/name", "--data", "eval", "--plan"]) == 0


def test_lines_and_pairs_are_guessed_from_the_beginning(tmp_path):
    sentences = [f"sentence number {number:06}" for number in range(5000)]
    (tmp_path / "a").write_text("".join(f"{line}\n" for line in sentences))
    (tmp_path / "b").write_text("".join(f"{line}\n" for line in sentences[:12]))
    assert planned_lines(str(tmp_path / "a")).rows == 5000
    assert "about 5,000 lines" in planned_lines(str(tmp_path / "a")).line
    assert planned_lines(str(tmp_path / "b")).line.endswith("276 bytes, 12 lines")
    pairs = planned_pairs(TextSource((str(tmp_path / "a"), str(tmp_path / "a")), ("en", "es"), cap=700))
    assert pairs.rows == 700 and pairs.line.endswith("about 5,000 pairs, at most 700 of them used")
    assert planned_lines("-").rows is None


def test_an_index_is_chosen_by_the_guess(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{number:040}\n" for number in np.random.default_rng(0).integers(1 << 60, size=3000))
    (tmp_path / "large").write_text(100 * rows)
    assert main(["mine", "--source", "large", "--target", "large", "--output", "new.tsv", "--plan"]) == 0
    out = capsys.readouterr().out
    assert "about 300,000 lines" in out and "index IVF1024,PQ64x4fs (recall 0.9, needs faiss)" in out
