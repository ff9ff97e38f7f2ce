"""`st-paragram tasks`: what it makes, prints and refuses."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from st_paragram.cli.main import main

SCRIPT = Path(__file__).parents[3] / "data_prep" / "muse_data.py"
ROWS = [{"gold_label": label, "sentence1": "It rains.", "sentence2": f"It is {label}."} for label in ("neutral", "-")]


@pytest.fixture
def snli(tmp_path):
    path = tmp_path / "snli.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_rows_and_numbers(snli, tmp_path, capsys):
    made, numbers = tmp_path / "nli" / "en.tsv", tmp_path / "numbers.json"
    command = ["tasks", "--kind", "nli", "--lang", "en", str(snli), "--output", str(made.parent)]
    assert main([*command, "--json", str(numbers)]) == 0
    assert made.read_text() == "neutral\tIt rains.\tIt is neutral.\n"
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.split("\n")[:3]] == ["2", "1", "1"] and out.endswith(f"{made}\n")
    left_out = {"without a label that annotators agreed on": 1}
    assert json.loads(numbers.read_text()) == {"read": 2, "left_out": left_out, "written": 1}
    assert main(command) == 1 and "en.tsv exists; choose another name or give --overwrite" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0


def test_settings_are_options(tmp_path, capsys):
    text = tmp_path / "talk.txt"
    text.write_text("".join(f"Where is number {i}?\nI do not know that.\n\n" for i in range(4)))
    options = ["--kind", "dialogue", "--lang", "en", str(text), "--output", str(tmp_path / "r")]
    assert main(["tasks", *options, "--most-per-response", "2"]) == 0
    assert (tmp_path / "r" / "en.tsv").read_text().count("\n") == 2
    assert "left out: too many of one response" in capsys.readouterr().out
    assert main(["tasks", *options, "--overwrite", "--most-per-response", "0"]) == 1
    assert "most_per_response" in capsys.readouterr().err


def test_sources_are_listed(capsys):
    assert main(["tasks", "--list"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("| source | --kind |") and "| CC BY-SA 4.0 |" in out and "github.com/ymcui/cmrc2018" in out


def test_what_is_missing_is_named(capsys, tmp_path):
    assert main(["tasks", "--kind", "faq"]) == 1
    assert "--lang, --output, FILE missing; give them, or --list" in capsys.readouterr().err
    gone = str(tmp_path / "gone.tsv")
    assert main(["tasks", "--kind", "faq", "--lang", "en", "--output", str(tmp_path / "o"), gone]) == 1
    assert capsys.readouterr().err == f"st-paragram tasks: {gone}: No such file or directory; check the path\n"


def test_the_script_does_the_same(snli, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["muse_data", "--kind", "nli", "--lang", "en", str(snli), "--output", str(tmp_path / "nli")]
    )
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 0 and (tmp_path / "nli" / "en.tsv").is_file()
    assert "rows written" in capsys.readouterr().out
