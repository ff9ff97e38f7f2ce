"""Options that would have no effect are refused in one line."""

from __future__ import annotations

import pytest

from st_paragram.cli.main import main
from st_paragram.runs.training_data import choose_data
from st_paragram.tools.preparation import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

TRAIN = "train --lang es --data built-in --plan"
MUSE = "train muse --langs es --bitext built-in --plan"
PREPARE = "prepare --lang es --text pairs.tsv --output s.h5"
REFUSED = {
    f"{TRAIN} --hidden-dim 50": "hidden_dim has no effect with encoder sp; leave hidden_dim out",
    f"{TRAIN} --teacher-weight 3": "teacher_weight has no effect without teacher; leave teacher",
    f"{MUSE} --no-bag --gate 0.3": "gate has no effect without keep_bag; leave gate out",
    f"{MUSE} --qa-margin 0.1": "qa_margin has no effect without texts of the task qa; leave",
    "towers p-sp-mini --qa . --nli-epochs 3 --output m": "nli_epochs has no effect without texts",
    f"{PREPARE} --tokens word --vocab-threads 2": "vocab_threads has no effect with tokens word",
    f"{PREPARE} --vocab v.model --vocab-size 99": "vocab_size has no effect with --vocab; leave",
    "bitext --lang es --no-download --text pairs.tsv --mirror x": "do not apply to --no-download",
    "score pairs.tsv --neighbors 3": "--neighbors needs a background; give --background self",
    "score pairs.tsv --precision 0.9": "--precision needs a labeled sample; give --labels",
    "search pairs.txt word --show-metadata": "--show-metadata needs an index, but pairs.txt is a",
    "dedupe pairs.txt --method exact --bands 5": "bands has no effect without --method minhash",
    "dedupe pairs.txt --method minhash --no-normalize": "normalize has no effect without --method",
    "info --check": "nothing to check; name a model, pair store, index or embeddings",
    "evaluate p-sp-mini --translations pairs.tsv --sets 2012": "--sets applies only to sts; leave",
    "evaluate p-sp-mini --translations pairs.tsv --limit 3": "--limit applies only to answer-retr",
    "serve --max-hits 5": "max_hits has no effect without index; leave max_hits out",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("a word\tuna palabra\n" * 9)
    (tmp_path / "pairs.txt").write_text("a word\n" * 9)


@pytest.mark.parametrize("command", REFUSED)
def test_options_without_effect_are_refused(command, capsys):
    assert main(command.split()) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert REFUSED[command] in message and len(message) < 200


def test_tasks_that_are_switched_off_need_no_texts():
    assert main(f"{MUSE} --qa-share 0".split()) == 0


def test_a_vocabulary_size_is_refused_for_a_store(store, capsys):
    command = f"train --lang xx --data {store.path} --vocab-size 500 --plan"
    assert main(command.split()) == 1
    assert "has a vocabulary; leave vocab_size out" in capsys.readouterr().err


def test_the_built_in_bitext_gets_the_given_vocabulary_size(monkeypatch):
    sizes = []
    monkeypatch.setattr(
        prepare, "prepare_cached", lambda texts, settings, *_: sizes.append(settings.vocab_size)
    )
    for size in (None, 2_000):
        choose_data("es", "built-in").prepared(PrepareSettings(("en", "es"), vocab_size=size))
    assert sizes == [1_000, 2_000]
