"""The encoders of ACL 2019 through the command line: prepare, train, load, and what is refused."""

import json
import sys

import numpy as np
import pytest
from support.data import make_pairs

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.model_directory.configuration import read_configuration
from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.learning.models.averaging import embedding_of

SMALL = "--dim 16 --epochs 1 --batch-size 16 --megabatch-size 4 --learning-rate 0.02 --device cpu"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with pairs, a store of word ids, and one of a vocabulary for each language."""
    folder = tmp_path_factory.mktemp("encoders")
    rows = "".join(f"{a}\t{b}\n" for a, b in make_pairs(400))
    (folder / "pairs.tsv").write_text(rows, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert prepare("--output w.h5 --tokens word") == 0
        assert prepare("--output d.h5 --sharing disjoint") == 0
    return folder


@pytest.fixture(autouse=True)
def _here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def prepare(options):
    return main(
        f"prepare --lang haw --text pairs.tsv --vocab-size 200 --overwrite {options}".split()
    )


def train(options):
    size = "" if ".h5" in options else "--vocab-size 200"  # a store has its vocabulary
    return main(f"train bitext --lang haw {size} --overwrite {SMALL} {options}".split())


@pytest.mark.parametrize(
    ("encoder", "kind", "architecture"),
    [
        ("word", "word", "averaging"),
        ("trigram", "trigram", "averaging"),
        ("blstm", "sentencepiece", "modules"),
    ],
)
def test_an_encoder_is_trained_from_text_and_loaded(folder, encoder, kind, architecture):
    more = "--hidden-dim 8 --scramble 0.3 --epochs 8" if encoder == "blstm" else "--epochs 12"
    assert train(f"--data pairs.tsv --encoder {encoder} {more}") == 0
    assert read_configuration(folder / f"{encoder}-haw").architecture == architecture
    assert (
        json.loads((folder / f"{encoder}-haw" / "training.json").read_text())["settings"]["encoder"]
        == encoder
    )
    model = st_paragram.load(f"{encoder}-haw", device="cpu")
    assert model[0].tokenizer.kind == kind
    first, second = zip(*make_pairs(50), strict=True)
    cosines = model.similarity(model.encode(list(first)), model.encode(list(second)))
    assert (cosines.argmax(1).numpy() == np.arange(50)).mean() > 0.3  # 0.02 by chance


@pytest.mark.parametrize(
    ("tokens", "sharing"),
    [
        ("word", "string"),
        ("word", "disjoint"),
        ("trigram", "disjoint"),
        ("sentencepiece", "string"),
    ],
)
def test_vocabularies_of_two_languages(tokens, sharing):
    assert prepare(f"--output s.h5 --tokens {tokens} --sharing {sharing}") == 0
    store = PairStore("s.h5")
    first, second = store.tokenizers
    assert isinstance(first, BilingualTokenizer) and first.inner_kind == tokens
    assert (first.language, second.language) == ("en", "haw") and first.shares_rows(second)
    (a, _), (b, _) = (store.take(side, np.arange(len(store))) for side in "ab")
    in_common = set(a.tolist()) & set(b.tolist()) - {first.unknown_id}
    assert bool(in_common) is (sharing == "string") or tokens == "word"
    assert not in_common or sharing == "string"
    encoder = "sp" if tokens == "sentencepiece" else tokens
    assert train(f"--data s.h5 --encoder {encoder} --output model") == 0
    model = st_paragram.load("model", device="cpu")
    texts = list(store.texts("b", np.arange(5)))
    plain, told = model.encode(texts), model.encode(texts, language="haw")
    assert np.array_equal(told, model.in_language("haw").encode(texts)) and not np.allclose(
        plain, told
    )
    assert np.allclose(model.encode(texts, language="en"), plain)


def test_a_model_of_words_begins_with_another_ones_rows():
    assert train("--data w.h5 --encoder word --output one") == 0
    assert train("--data w.h5 --encoder word --init one --output two --epochs 0.04 --seed 2") == 0
    one, two = (
        embedding_of(st_paragram.load(name, device="cpu")).embedding.weight
        for name in ("one", "two")
    )
    assert (one - two).abs().mean() < 0.1  # a new table differs by more than one
    with pytest.raises(st_paragram.errors.SettingsError, match="the model has one vocabulary"):
        st_paragram.load("one", device="cpu").encode(["a"], language="haw")


@pytest.mark.parametrize(
    ("run", "options", "message"),
    [
        (
            train,
            "--data pairs.tsv --encoder word --scramble 0.3",
            "scramble is 0.3, but the encoder word ignores",
        ),
        (
            train,
            "--data w.h5 --output x",
            "w.h5: a store of word ids, but the encoder sp reads sentencepiece ids",
        ),
        (
            train,
            "--data pairs.tsv --encoder blstm --init w --output x",
            "init is 'w', but only averaging models",
        ),
        (
            prepare,
            "--lang en --output x.h5 --sharing disjoint",
            "separate vocabularies need exactly two languages",
        ),
        (
            prepare,
            "--output x.h5 --splitter moses --tokens word",
            'pip install "st_paragram[moses]"',
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(run, options, message, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert run(options) == 1
    assert message in capsys.readouterr().err.strip().split("\n")[-1]
