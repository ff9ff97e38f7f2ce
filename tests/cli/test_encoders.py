"""The encoders of ACL 2019 through the command line: prepare, train, load, and what is refused."""

import json
import re
import sys

import numpy as np
import pytest
from support.data import make_pairs

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.encoding.directory import read_configuration
from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.learning.models.averaging import embedding_of

SMALL = "--dim 16 --epochs 12 --batch-size 16 --megabatch-size 4 --learning-rate 0.02 --device cpu".split()  # noqa: SIM905


def write_pairs(folder):
    rows = "".join(f"{a}\t{b}\n" for a, b in make_pairs(400))
    (folder / "pairs.tsv").write_text(rows, encoding="utf-8")
    return folder / "pairs.tsv"


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Pairs in the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_pairs(tmp_path)


def prepare(*options):
    return main(["prepare", "--lang", "xx", "--text", "pairs.tsv", "--vocab-size", "200", *options])


def train(*options):
    return main(["train", "bitext", "--lang", "xx", "--vocab-size", "200", *SMALL, *options])


@pytest.mark.parametrize(
    ("encoder", "kind", "architecture"),
    [("word", "word", "averaging"), ("trigram", "trigram", "averaging"), ("blstm", "sentencepiece", "modules")],
)
def test_an_encoder_is_trained_from_text_and_loaded(text, encoder, kind, architecture):
    options = ["--hidden-dim", "8", "--scramble", "0.3", "--epochs", "8"] if encoder == "blstm" else []
    assert train("--data", "pairs.tsv", "--encoder", encoder, *options) == 0
    folder = text.parent / f"{encoder}-xx"
    assert read_configuration(folder).architecture == architecture
    assert json.loads((folder / "training.json").read_text())["settings"]["encoder"] == encoder
    model = st_paragram.load(str(folder), device="cpu")
    assert model[0].tokenizer.kind == kind
    first, second = zip(*make_pairs(50), strict=True)
    cosines = model.similarity(model.encode(list(first)), model.encode(list(second)))
    found = (cosines.argmax(1).numpy() == np.arange(50)).mean()
    assert found > 0.3  # 0.02 by chance


@pytest.mark.parametrize(
    ("tokens", "sharing", "shared"),
    [
        ("word", "string", True),
        ("trigram", "disjoint", False),
        ("sentencepiece", "string", True),
        ("sentencepiece", "disjoint", False),
    ],
)
def test_vocabularies_of_two_languages(text, tokens, sharing, shared):
    assert prepare("--output", "s.h5", "--tokens", tokens, "--sharing", sharing) == 0
    store = PairStore("s.h5")
    first, second = store.tokenizers
    assert isinstance(first, BilingualTokenizer) and first.inner_kind == tokens
    assert (first.language, second.language) == ("en", "xx") and first.shares_rows(second)
    (a, _), (b, _) = (store.take(side, np.arange(len(store))) for side in "ab")
    assert bool(set(a.tolist()) & set(b.tolist()) - {first.unknown_id}) is shared or tokens == "word"
    encoder = "sp" if tokens == "sentencepiece" else tokens
    assert train("--data", "s.h5", "--encoder", encoder, "--output", "model", "--epochs", "1") == 0
    model = st_paragram.load("model", device="cpu")
    texts = list(store.texts("b", np.arange(5)))
    plain, told = model.encode(texts), model.encode(texts, language="xx")
    assert np.array_equal(told, model.in_language("xx").encode(texts)) and not np.allclose(plain, told)
    assert np.allclose(model.encode(texts, language="en"), plain)


def test_disjoint_languages_have_no_row_in_common(text):
    assert prepare("--output", "s.h5", "--tokens", "word", "--sharing", "disjoint") == 0
    first, second = PairStore("s.h5").tokenizers
    ours = {int(row) for row in first.encode([a for a, _ in make_pairs(400)])[0]}
    theirs = {int(row) for row in second.encode([b for _, b in make_pairs(400)])[0]}
    assert not ours & theirs and ours | theirs <= set(range(len(first)))


def test_a_model_of_words_begins_with_another_ones_rows(text):
    word = ["--data", "pairs.tsv", "--encoder", "word"]
    assert train(*word, "--output", "one", "--epochs", "1") == 0
    assert train(*word, "--init", "one", "--output", "two", "--epochs", "0.04", "--seed", "2") == 0
    one, two = (embedding_of(st_paragram.load(name, device="cpu")).embedding.weight for name in ("one", "two"))
    assert (one - two).abs().mean() < 0.1  # a new table differs by more than one


REFUSED = [
    (["--data", "pairs.tsv", "--encoder", "word", "--scramble", "0.3"], r"scramble is 0\.3, but word knows no order"),
    (["--data", "pairs.tsv", "--encoder", "gru"], None),
    (
        ["--data", "w.h5"],
        r"w\.h5: a store of word ids, and the encoder sp reads sentencepiece ids; choose the encoder word",
    ),
    (["--data", "w.h5", "--encoder", "trigram"], r"the encoder trigram reads trigram ids"),
    (["--data", "d.h5", "--encoder", "blstm"], r"separate vocabularies per language"),
    (["--data", "pairs.tsv", "--encoder", "blstm", "--init", "one"], r"init is 'one', but only an averaging model"),
]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A folder with pairs, a store of word ids, and one of a vocabulary for each language."""
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_pairs(folder)
        assert prepare("--output", "w.h5", "--tokens", "word") == 0
        assert prepare("--output", "d.h5", "--sharing", "disjoint") == 0
    return folder


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(stores, monkeypatch, capsys, options, message):
    monkeypatch.chdir(stores)
    if message is None:
        with pytest.raises(SystemExit):
            train(*options)
        assert "invalid choice: 'gru'" in capsys.readouterr().err
        return
    assert train(*options) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "ERROR" in line.upper() or "st-paragram" in line]
    assert re.search(message, "\n".join(lines)), lines


def test_preparations_that_cannot_be_are_refused(text, capsys):
    assert main(["prepare", "--lang", "en", "--text", "pairs.tsv", "--output", "x.h5", "--sharing", "disjoint"]) == 1
    assert "separate vocabularies need two languages" in capsys.readouterr().err
    assert (
        main(["prepare", "--lang", "fr-es", "--text", "en-fr:pairs.tsv", "--output", "x.h5", "--sharing", "string"])
        == 1
    )
    assert "separate vocabularies need two languages" in capsys.readouterr().err


def test_segmentation_is_for_sentencepiece(text, capsys):
    assert prepare("--output", "x.h5", "--segment", "jieba", "--tokens", "word") == 1
    assert "segmentation is jieba for tokens word; only sentencepiece models segment" in capsys.readouterr().err


def test_moses_is_for_words_and_asked_for_early(text, capsys, monkeypatch):
    assert prepare("--output", "x.h5", "--splitter", "moses") == 1
    assert "splitter is moses for tokens sentencepiece; it is for tokens word" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert prepare("--output", "x.h5", "--splitter", "moses", "--tokens", "word") == 1
    assert 'pip install "st_paragram[moses]"' in capsys.readouterr().err


def test_a_language_is_for_two_vocabularies(text):
    assert train("--data", "pairs.tsv", "--output", "joint", "--epochs", "1") == 0
    with pytest.raises(st_paragram.errors.SettingsError, match="the model has one vocabulary"):
        st_paragram.load("joint", device="cpu").encode(["a"], language="xx")


def test_export_of_trigrams_and_of_a_bilstm(text, capsys):
    assert train("--data", "pairs.tsv", "--encoder", "trigram", "--output", "t", "--epochs", "1") == 0
    assert train("--data", "pairs.tsv", "--encoder", "blstm", "--output", "b", "--epochs", "0.2") == 0
    capsys.readouterr()
    assert main(["export", "t", "small", "--dtype", "int8"]) == 0
    texts = [a for a, _ in make_pairs(30)]
    whole, small = (st_paragram.load(name, device="cpu").encode(texts) for name in ("t", "small"))
    assert (
        np.einsum("nd,nd->n", whole, small) / np.linalg.norm(whole, axis=1) / np.linalg.norm(small, axis=1)
    ).min() > 0.999
    capsys.readouterr()
    assert main(["export", "b", "c", "--dtype", "int8"]) == 1
    assert "which needs torch" in capsys.readouterr().err
