"""A release in small: what it is made of, what it costs, what comes out, and what is not done twice."""

import lzma
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer
from support.data import make_pairs

import st_paragram
from st_paragram.core.encoding.model_files import table_type
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.release import run
from st_paragram.release.card import release_card
from st_paragram.release.description import read_release
from st_paragram.release.plan import plan, plan_table
from st_paragram.release.run import Work, make_release
from st_paragram.release.texts import texts_of
from st_paragram.tools.evaluation.results import StsResult
from st_paragram.tools.evaluation.tatoeba import RetrievalError, RetrievalScores, TatoebaResult

RELEASE = Path(__file__).parents[2] / "recipes" / "release.yaml"
DESCRIPTION = {
    "models": {
        "p-sp-small": {
            "languages": ["en", "es"],
            "config": "small",
            "settings": {"dim": 8, "epochs": 1, "batch_size": 16, "megabatch_size": 4, "device": "cpu"},
            "preparation": {"vocab_size": 200, "vocab_threads": 1},
            "pack": [
                {"name": "p-sp-small-int8", "dtype": "int8", "dim": 4},
                {"name": "p-sp-small-int4", "dtype": "int4"},
            ],
            "licence": "cc0-1.0",
        },
        "p-sp-open": {
            "languages": ["es"],
            "open_only": True,
            "settings": {"dim": 6, "epochs": 1, "batch_size": 16, "device": "cpu"},
            "preparation": {"vocab_size": 150, "vocab_threads": 1},
        },
    },
    "sources": {
        "ours": {"licence": "CC0-1.0", "open": True},
        "theirs": {"licence": "none stated", "note": "Near a test set."},
    },
}


@pytest.fixture
def texts(tmp_path):
    """Two sources of Spanish, one of English paraphrases."""
    folder = tmp_path / "texts"
    for place, seed in (("es/ours.tsv", 0), ("es/theirs.tsv.xz", 1), ("en/ours.tsv", 2)):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        opened = lzma.open if place.endswith(".xz") else open
        with opened(folder / place, "wt", encoding="utf-8") as file:
            file.writelines(f"{a}\t{b}\n" for a, b in make_pairs(200, seed))
    return folder


def described(tmp_path, change=lambda values: None):
    values = yaml.safe_load(yaml.safe_dump(DESCRIPTION, sort_keys=False))
    change(values)
    (tmp_path / "release.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    return read_release(tmp_path / "release.yaml")


def test_a_model_takes_the_texts_that_it_may(texts, tmp_path):
    release = described(tmp_path)
    both = texts_of(release.models["p-sp-small"], release, texts)
    assert [(text.language, text.source) for text in both] == [("en", "ours"), ("es", "ours"), ("es", "theirs")]
    assert [text.source for text in texts_of(release.models["p-sp-open"], release, texts)] == ["ours"]
    without = described(tmp_path, lambda values: values["models"]["p-sp-small"].update(leave_out=["theirs"]))
    assert len(texts_of(without.models["p-sp-small"], without, texts)) == 2


def test_the_plan_tells_pairs_and_times(texts, tmp_path):
    plans = plan(described(tmp_path), texts)
    assert [sum(each.rows) for each in plans] == [600, 200]
    table = plan_table(plans)
    assert "| p-sp-small | en-es | 3 | 600 | 8 | 1 | 0 | 0.0 |" in table and "minutes on two cores" in table
    longer = described(tmp_path, lambda values: values["models"]["p-sp-open"]["settings"].update(epochs=1000))
    assert plan(longer, texts)[1].seconds > 100 * plans[1].seconds


def test_what_is_refused(texts, tmp_path):
    def refused(change, message):
        with pytest.raises(SettingsError, match=message):
            plan(described(tmp_path, change), texts)

    refused(lambda values: values["sources"].pop("theirs"), "theirs.tsv.xz: a source without a licence; describe")
    refused(lambda values: values["sources"]["ours"].update(open=False), "es: no open text to train on")
    refused(lambda values: values["models"]["p-sp-open"].update(languages=["de"]), "de: no open text to train on")
    refused(lambda values: values["models"]["p-sp-open"].update(epochs=3), "p-sp-open.epochs: Unexpected")
    refused(lambda values: values["models"]["p-sp-open"].update(leave_out=["x"]), "leave_out names 'x'")
    refused(lambda values: values["models"]["p-sp-open"]["settings"].update(dims=3), "p-sp-open: .*unknown setting")
    refused(lambda values: values["models"]["p-sp-open"]["preparation"].update(x=3), "p-sp-open: preparation: unknown")
    refused(
        lambda values: values["models"]["p-sp-small"].update(begin_with="p-sp-open"), "no model that is made before"
    )
    refused(lambda values: values.pop("sources"), "sources: Field required")
    with pytest.raises(SettingsError, match="no model 'p-sp-xx' in the release; it has p-sp-small, p-sp-open"):
        described(tmp_path).only(["p-sp-xx"])


def test_models_are_made_packed_and_described_once(texts, tmp_path, monkeypatch):
    work = Work(tmp_path / "out")
    made = make_release(plan(described(tmp_path), texts), work)
    assert [path.name for path in made] == ["p-sp-small", "p-sp-small-int8", "p-sp-small-int4", "p-sp-open"]
    assert SentenceTransformer(str(made[0]), device="cpu").encode(["ba ce"]).shape == (1, 8)
    assert st_paragram.load(made[1]).encode(["ba ce"]).shape == (1, 4)
    assert [table_type(folder).value for folder in made] == ["float32", "int8", "int4", "float32"]

    card = ModelCard.load(made[1] / "README.md")
    assert (card.data.license, card.data.language) == ("cc0-1.0", ["en", "es"])
    assert "# p-sp-small-int8\n" in card.text and 'SentenceTransformer("p-sp-small-int8")' in card.text
    assert "| ours | en 200, es 200 | CC0-1.0 |" in card.text and "| theirs | es 200 | none stated |" in card.text
    assert card.text.count("## Sources") == 1 and "3 texts of the sources below: " in card.text
    assert "4 components," in card.text and "A smaller copy of p-sp-small" in card.text
    assert card.text.count("Near a test set.") == 1
    small = ModelCard.load(made[2] / "README.md").text
    assert 'st_paragram.load("p-sp-small-int4")' in small and "SentenceTransformer(" not in small
    assert small.count("## Table of int4") == 1
    assert "Near a test set." not in ModelCard.load(made[3] / "README.md").text
    assert "theirs" not in ModelCard.load(made[3] / "README.md").text

    def again(*_):
        raise AssertionError("trained again")

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}
    monkeypatch.setattr(run, "run_training", again)
    assert make_release(plan(described(tmp_path), texts), work) == made
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}

    other = described(tmp_path, lambda values: values["models"]["p-sp-open"]["settings"].update(seed=1))
    with pytest.raises(
        ModelDirectoryError, match="p-sp-open: built from other texts or with other settings; remove it"
    ):
        make_release(plan(other, texts), work)
    (work.output / "made" / "p-sp-open.json").unlink()  # stopped right after its training
    with pytest.raises(ModelDirectoryError, match="p-sp-open: trained with other settings; remove it"):
        make_release(plan(other, texts), work)
    shutil.rmtree(made[1])
    assert make_release(plan(described(tmp_path), texts), work) == made, "a copy that was removed is made again"
    assert made[1].is_dir()


def test_a_stopped_training_is_resumed(texts, tmp_path, monkeypatch):
    resumed = []
    real = run.run_training

    def stopped(training):
        resumed.append(training.resume)
        if len(resumed) == 1:
            (training.checkpoints / "checkpoint-5").mkdir(parents=True)
            (training.checkpoints / "checkpoint-5" / "complete.json").write_text("{}")
            raise KeyboardInterrupt
        shutil.rmtree(training.checkpoints)
        return real(run.TrainingRun(**{**vars(training), "resume": False}))

    monkeypatch.setattr(run, "run_training", stopped)
    plans = plan(described(tmp_path).only(["p-sp-open"]), texts)
    with pytest.raises(KeyboardInterrupt):
        make_release(plans, Work(tmp_path / "out"))
    make_release(plans, Work(tmp_path / "out"))
    assert resumed == [False, True]


def test_a_model_begins_with_the_rows_of_one_made_before(texts, tmp_path):
    def change(values):
        values["models"]["p-sp-open"].update(begin_with="p-sp-small")
        values["models"]["p-sp-open"]["settings"].update(dim=8, learning_rate=1e-9)

    work = Work(tmp_path / "out")
    make_release(plan(described(tmp_path, change), texts), work)
    small, opened = (st_paragram.load(work.output / name, device="cpu")[0] for name in ("p-sp-small", "p-sp-open"))
    rows = {small.tokenizer.piece(row): row for row in range(len(small.tokenizer))}
    shared = [
        (row, rows[piece])
        for row in range(len(opened.tokenizer))
        if (piece := opened.tokenizer.piece(row)) in rows and piece
    ]
    assert len(shared) > 50 and opened.tokenizer == small.tokenizer
    new, old = torch.tensor(shared).T
    assert torch.allclose(opened.embedding.weight[new], small.embedding.weight[old], atol=1e-6)


def test_scores_stand_on_the_card_and_in_its_metadata(texts, tmp_path):
    (_, each) = plan(described(tmp_path), texts)
    (folder,) = make_release([each], Work(tmp_path / "out"))
    sts = StsResult(mteb={"STS12": 0.61234, "STS17/es-en": None})
    tatoeba = TatoebaResult({"spa": RetrievalScores(10, RetrievalError(0.1, 0.2), RetrievalError(0, 0), 0.9, 0.8)})
    card = ModelCard(release_card(folder, each, sts, tatoeba))
    assert "| STS12 | 61.2 |" in card.text and "| Tatoeba spa, errors | 15.0 |" in card.text
    found = {
        result.dataset_name: (result.metric_type, result.metric_value)
        for result in card.data.eval_results
        if result.dataset_name.startswith("MTEB")
    }
    assert found == {"MTEB STS12": ("cosine_spearman", 61.23), "MTEB Tatoeba (spa-eng)": ("accuracy", 85.0)}


def test_the_published_release_is_sound():
    release = read_release(RELEASE)
    assert release.models["p-sp-mini-float32"].open_only
    assert sorted(set(release.sources)) == list(release.sources)
    for source in ("quran", "tico19", "mozilla_www"):
        assert release.sources[source].open
    for licence in release.sources.values():
        if licence.open:
            assert not licence.licence.startswith(("none", "GPL", "CC BY-NC"))
