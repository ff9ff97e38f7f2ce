"""`st-paragram generate`: what it reads, writes and refuses; and the benchmark of style transfer."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
import torch
from harness.families.style_transfer import run_style_transfer, style_tables
from support.generative import new_generator

import st_paragram
from st_paragram.cli.main import main
from st_paragram.families.bgt.generation.generate import reconstruct, transfer, translate
from st_paragram.families.bgt.generation.settings import GenerationSettings
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.learning.models import directory

QUICK = GenerationSettings(beam=2, max_length=5)
OPTIONS = ["--beam", "2", "--max-length", "5"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, vocabulary, pairs):
    """A model, one that only translates, an encoder alone, and texts."""
    torch.manual_seed(5)
    folder = tmp_path_factory.mktemp("generate")
    for name, objective in (("bgt", "bgt"), ("trans", "bilingual-trans")):
        generator = new_generator(vocabulary, objective)
        model = GenerativeEncoder.of(generator.semantic.pipeline, ("en", "xx"), vocabulary, generator)
        directory.save(model, folder / name)
    first, second = zip(*pairs[:5], strict=True)
    for name, texts in {"en.txt": first, "xx.txt": second, "short.txt": first[:3], "empty.txt": ()}.items():
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    (folder / "pairs.tsv").write_text("".join(f"{b}\t{a}\n" for a, b in pairs[:3]), encoding="utf-8")
    (folder / "old.txt").write_text("old")
    (folder / "nothing").mkdir()
    return folder


@pytest.fixture(autouse=True)
def _inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def model(folder):
    return st_paragram.load(folder / "bgt", device="cpu")


def command(*arguments):
    return main(["generate", *arguments, *OPTIONS])


def lines(text):
    assert text.endswith("\n")
    return text[:-1].split("\n")


def test_each_task_writes_what_its_function_does(model, pairs, capsys):
    first, second = (list(side) for side in zip(*pairs[:5], strict=True))
    assert command("bgt", "--task", "reconstruct", "--from", "xx", "xx.txt") == 0
    assert lines(capsys.readouterr().out) == reconstruct(model, second, "xx", QUICK)
    assert command("bgt", "--task", "translate", "--from", "en", "--to", "xx", "en.txt") == 0
    assert lines(capsys.readouterr().out) == translate(model, first, "en", "xx", QUICK)
    assert command("bgt", "--task", "transfer", "--to", "en", "--styles", "en.txt", "xx.txt") == 0
    assert lines(capsys.readouterr().out) == transfer(model, second, first, "en", QUICK)
    assert command("bgt", "--task", "transfer", "xx.txt", "--style", first[0]) == 0
    assert lines(capsys.readouterr().out) == transfer(model, second, first[:1] * 5, "en", QUICK)


def test_standard_input_with_blank_lines(model, pairs, capsys, monkeypatch):
    text = f"{pairs[0][0]}\n\n  \n{pairs[1][0]}"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert command("bgt", "--task", "reconstruct", "-", "--batch-size", "1") == 0
    expected = reconstruct(model, [pairs[0][0], pairs[1][0]], "en", QUICK)
    assert lines(capsys.readouterr().out) == [expected[0], "", "", expected[1]]


def test_a_file_is_written_whole_and_not_replaced(folder, capsys):
    assert command("trans", "--task", "translate", "en.txt", "--output", "made/out.txt") == 0
    assert capsys.readouterr().out == ""
    whole = (folder / "made/out.txt").read_bytes()
    assert whole.count(b"\n") == 5
    assert command("trans", "--task", "translate", "xx.txt", "--output", "made/out.txt") == 1
    assert "out.txt exists" in capsys.readouterr().err
    assert command("trans", "--task", "translate", "short.txt", "--output", "made/out.txt", "--overwrite") == 0
    assert (folder / "made/out.txt").read_bytes() == b"".join(whole.splitlines(keepends=True)[:3])
    assert [path.name for path in (folder / "made").iterdir()] == ["out.txt"]


@pytest.mark.parametrize(
    ("options", "measured", "left_out"),
    [
        (["--task", "reconstruct", "en.txt"], ["cosine with source", "BLEU"], "style"),
        (["--task", "translate", "en.txt"], ["words of source"], "BLEU"),
        (["--task", "translate", "en.txt", "--references", "xx.txt"], ["BLEU"], "style"),
        (["--task", "transfer", "xx.txt", "--styles", "en.txt"], ["marks of style, F1"], "BLEU"),
    ],
)
def test_measures_come_after_the_output(options, measured, left_out, capsys):
    pytest.importorskip("sacrebleu")
    assert command("bgt", *options, "--measures") == 0
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 5
    assert "| of 5 sentences | mean |" in shown.err and left_out not in shown.err
    assert all(f"| {name} | " in shown.err for name in measured)


REFUSED = [
    (
        ["p-sp-mini", "--task", "reconstruct", "en.txt"],
        "a model of architecture 'averaging', an encoder alone; generate",
    ),
    (["bgt/language-en", "--task", "reconstruct", "en.txt"], "needs a directory made by `st-paragram train bgt`"),
    (["nobody", "--task", "reconstruct", "en.txt"], "no model 'nobody'"),
    (["nothing", "--task", "reconstruct", "en.txt"], "nothing: st_paragram.json is missing"),
    (["bgt", "--task", "reconstruct", "none.txt"], "none.txt: No such file"),
    (["bgt", "--task", "reconstruct", "nothing"], "nothing is a folder, where a file is expected"),
    (["bgt", "--task", "reconstruct", "empty.txt"], "empty.txt: empty; give a text"),
    (["bgt", "--task", "reconstruct", "en.txt", "--from", "fr"], "no language 'fr' in this model; it knows en and xx"),
    (["trans", "--task", "reconstruct", "en.txt"], "this model cannot reconstruct: language encoders: none"),
    (["bgt", "--task", "transfer", "en.txt"], "a transfer needs a style"),
    (["bgt", "--task", "transfer", "en.txt", "--style", "a", "--styles", "en.txt"], "either --style SENTENCE or"),
    (["bgt", "--task", "transfer", "en.txt", "--style", " "], "the style is blank"),
    (["bgt", "--task", "transfer", "en.txt", "--styles", "short.txt"], "short.txt: ends after line 3, but another"),
    (["bgt", "--task", "transfer", "-", "--styles", "-"], "two files are standard input"),
    (["bgt", "--task", "translate", "en.txt", "--style", "a"], "a style for --task translate"),
    (["bgt", "--task", "translate", "en.txt", "--references", "xx.txt"], "references are for --measures of --task tr"),
    (["bgt", "--task", "translate", "en.txt", "--beam", "0"], "beam is 0"),
    (["bgt", "--task", "translate", "en.txt", "--length-penalty", "-1"], "length_penalty is -1"),
    (["bgt", "--task", "translate", "en.txt", "--output", "old.txt"], "old.txt exists"),
    (["bgt", "--task", "translate", "en.txt", "--measures", "--scorer", "nobody"], "no model 'nobody'"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_what_cannot_be_is_refused_in_a_line(arguments, message, capsys):
    assert main(["generate", *arguments]) == 1
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_a_missing_extra_is_told_before_anything_is_written(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    assert command("bgt", "--task", "reconstruct", "en.txt", "--measures") == 1
    shown = capsys.readouterr()
    assert 'pip install "st_paragram[generation]"' in shown.err and shown.out == ""


def test_the_benchmark_of_style_transfer(model, pairs):
    run = run_style_transfer("bgt", "pairs.tsv", None, "p-sp-mini", QUICK)
    sources, styles = [b for _, b in pairs[:3]], [a for a, _ in pairs[:3]]
    assert [row.output for row in run.rows] == transfer(model, sources, styles, settings=QUICK)
    written, means = style_tables(run)
    assert written.count("\n") == 4 and written.split("\n")[2].startswith(f"| {sources[0]} | {styles[0]} | ")
    assert means.startswith("| bgt, 3 pairs | mean |") and "cosine with source" in means
