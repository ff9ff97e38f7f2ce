"""`st-paragram train bgt` and its configurations: from text to a directory for every reader."""

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support.data import make_pairs

import st_paragram
from st_paragram.cli.main import main, parse
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.runs.families import BGT

QUICK = (
    "--dim 16 --ffn-dim 16 --heads 2 --latent-dim 8 --batch-tokens 300 --candidates 20 --epochs 1"
    " --device cpu"
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Train on so many pairs with further options; the status."""
    monkeypatch.chdir(tmp_path)

    def run(options="", pairs=300):
        lines = "".join(f"{a}\t{b}\n" for a, b in make_pairs(pairs))
        (tmp_path / "pairs.tsv").write_text(lines, encoding="utf-8")
        asked = (
            f"train bgt --lang es --data pairs.tsv --vocab-size {min(200, 6 * pairs)} {QUICK}"
            f" {options}"
        )
        return main(asked.split())

    return run


def test_the_command_makes_a_directory_that_commands_take(run, capsys, caplog):
    caplog.set_level("INFO")
    assert run() == 0
    out = capsys.readouterr().out
    assert (
        "training on pairs.tsv: 300 pairs, 1 epoch" in caplog.messages
        and "; model in bgt-es\n" in out
    )
    assert not Path("bgt-es.checkpoints").exists()
    record = read_training_record("bgt-es")
    assert record.settings["objective"] == "bgt" and record.settings["dim"] == 16
    assert {"kl_semantic", "kl_a", "kl_b", "reconstruction", "translation"} <= set().union(
        *record.history
    )
    card = Path("bgt-es/README.md").read_text(encoding="utf-8")
    assert "EMNLP 2020" in card and "- transformer\n" in card and "EMNLP 2022" not in card
    texts = [pair[0] for pair in make_pairs(3)]
    ours = st_paragram.load("bgt-es").encode(texts)
    np.testing.assert_allclose(SentenceTransformer("bgt-es").encode(texts), ours, atol=1e-5)
    Path("lines.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert (
        main(["generate", "bgt-es", "--task", "reconstruct", "--max-length", "3", "lines.txt"]) == 0
    )
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_baseline_has_its_name_and_of_few_pairs_one_is_held_out(run):
    assert run("--objective bilingual-trans", pairs=8) == 0
    assert "translate in both directions" in Path("bilingual-trans-es/README.md").read_text(
        encoding="utf-8"
    )
    history = read_training_record("bilingual-trans-es").history
    (held_out,) = (
        entry["eval_held_out_loss"] for entry in history if "eval_held_out_loss" in entry
    )
    assert held_out > 0


REFUSED = {
    "--dim 10 --heads 4": "dim is 10 and heads 4; dim must be a multiple of heads",
    "--dim 15 --heads 3": "dim is 15; position sines and cosines",
    "--config small": "config is 'small'; give one of bgt_paper, bgt_small, or a YAML file",
    "--min-pieces 99": "pairs left, the others have a sentence of fewer than 99 tokens",
}


@pytest.mark.parametrize("options", REFUSED)
def test_bad_input_is_told_in_one_line(run, capsys, options):
    assert run(options) == 1
    assert (
        len([line for line in capsys.readouterr().err.splitlines() if REFUSED[options] in line])
        == 1
    )


def test_configurations_and_the_commands_in_their_headers():
    assert list(BGT.configs) == ["bgt_paper", "bgt_small"]
    # the defaults are the paper's
    assert BGT.read_settings("bgt_paper", {}) == GenerativeSettings()
    for name, path in BGT.configs.items():
        lines = path.read_text(encoding="utf-8").split("\n")
        (words,) = (line[1:].split() for line in lines if line.startswith("#   st-paragram"))
        chosen = parse(words[1:])
        assert (words[:2], chosen.kind, chosen.config) == (["st-paragram", "train"], "bgt", name)
