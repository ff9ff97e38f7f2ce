"""`st-paragram info`: what it says of models, stores, indexes, embeddings and the installation;
what it refuses.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from support.dual_encoder import ARCHITECTURES, new_model

import st_paragram
from st_paragram import SearchIndex
from st_paragram.cli.main import main
from st_paragram.core.encoding.unit_embeddings import count_tokens
from st_paragram.core.model_directory.configuration import TRAINING_FILE
from st_paragram.errors import SettingsError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.embed_files import embed_files

CARD = "---\nlanguage:\n- en\nlicense: cc-by-4.0\n---\n# p-sp-xx\n\nlicense: none of this\n"


@pytest.fixture
def model(tmp_path, vocabulary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    embedding = SentencePieceEmbedding(vocabulary, 12, dropout=0.1)
    return load_save.save(pipeline(embedding, device="cpu"), tmp_path / "p-sp-xx", card=CARD)


@pytest.fixture
def lines(tmp_path, pairs):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{text}\n" for text, _ in pairs[:50]), encoding="utf-8")
    return path


def described(capsys, *names):
    assert main(["info", *map(str, names), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_model(model, vocabulary, capsys):
    (found,) = described(capsys, "--model", model)
    assert (found["kind"], found["name"], found["architecture"]) == (
        "model",
        "p-sp-xx",
        "averaging",
    )
    assert (
        found["properties"].items()
        >= {
            "embedding_dimension": 12,
            "vocabulary_size": len(vocabulary),
        }.items()
    )
    assert (found["license"], found["training"]) == ("cc-by-4.0", None)
    files = {file.name: file.read_bytes() for file in model.iterdir()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert found["files"] == {
        name: {"size": len(files[name]), "sha256": digests[name]} for name in files
    }
    assert main(["info", "p-sp-xx", "--check"]) == 0
    shown = capsys.readouterr().out
    assert (
        shown.startswith("model p-sp-xx\n  architecture: averaging\n")
        and digests["README.md"] in shown
    )
    assert "  license: cc-by-4.0\n  training: none\n  files\n" in shown
    assert "  checked: embeddings of 12 dimensions, all numbers finite\n" in shown
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:-4] + np.float32(np.nan).tobytes())
    assert main(["info", "p-sp-xx"]) == 0 and main(["info", "p-sp-xx", "--check"]) == 1
    assert "NaN, infinite" in capsys.readouterr().err


def test_unknown_tokens_of_texts(model, lines, tmp_path, vocabulary, capsys):
    foreign = tmp_path / "foreign.txt"
    foreign.write_text("\ue000\n\n\ue001 \ue002\n", encoding="utf-8")
    texts = lines.read_text("utf-8").split("\n")[:-1]
    tokens = vocabulary.count_tokens(texts)
    (found,) = described(capsys, model, "--text", f"en:{lines}", f"ja:{foreign}", f"ja:{foreign}")
    # each unknown word follows the mark of a space
    assert found["unknown_tokens"] == {
        "texts": {"en": 50, "ja": 4},
        "tokens": {"en": tokens.tokens, "ja": 12},
        "share_unknown": {"en": tokens.unknown / tokens.tokens, "ja": 0.5},
    }
    assert main(["info", str(model), "--text", f"ja:{foreign}"]) == 0
    shown = capsys.readouterr().out
    assert shown.endswith(
        "  unknown tokens\n    texts: ja 2\n    tokens: ja 6\n    share unknown\n      ja: 0.5\n"
    )
    (tmp_path / "empty.txt").write_text("\n")
    refused = {
        f"{model} --text {lines}": f"{lines}: no language; write it before the file, such as es:",
        f"{model} --text xx:{lines}": "unknown language code 'xx'; use an ISO 639 code such as",
        f"{model} --text Spanish:{lines}": "unknown language code 'Spanish'; did you mean es?",
        f"--text en:{lines}": "--text needs a model; name it before --text",
        f"{model} --text en:nowhere": "nowhere: No such file",
        f"{model} --text en:{tmp_path}/empty.txt": "empty.txt: no text; give a file with one text",
    }
    for options, message in refused.items():
        assert main(["info", *options.split()]) == 1
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_unknown_tokens_of_dual_encoders(store, vocabulary, architecture):
    texts = ["ba \ue000 ce", "fo gu"]
    counts = count_tokens(new_model(store, architecture), texts, "en")
    assert counts == vocabulary.count_tokens(texts) and counts.unknown == 1


def test_unknown_tokens_of_other_tokenizers(model, lines, store, capsys):
    class Transformers:
        all_special_ids = (0,)
        unk_token_id = 3

        def __call__(self, texts, **_):
            return {"input_ids": [[3, 5, 3], [6]][: len(texts)]}

    class Model:
        tokenizer = Transformers()

    assert count_tokens(Model(), ["a", "b"], "en") == (4, 2)
    Model.tokenizer = None
    with pytest.raises(SettingsError, match="no single tokenizer"):
        count_tokens(Model(), ["a"], "en")
    assert main(["info", str(store.path), "--text", f"en:{lines}"]) == 1
    assert "is a pair store, not a model; leave --text out" in capsys.readouterr().err


def test_a_store(store, vocabulary, capsys):
    (found,) = described(capsys, store.path)
    assert (found["kind"], found["languages"], found["pairs"]) == ("pair store", ["en", "xx"], 700)
    options = {"lower_case": True, "segmentation": "none"}
    assert (
        found["vocabularies"][0].items()
        >= {
            "kind": "sentencepiece",
            "ids": len(vocabulary),
            **options,
        }.items()
    )
    assert [side["language"] for side in found["sides"]] == ["en", "xx"] and len(
        found["examples"]
    ) == 3
    assert found["settings"] == {"note": "made for tests"} and list(found["files"]) == ["en-xx.h5"]


def test_an_index(model, lines, capsys):
    SearchIndex.build(lines, "lines.index", model)
    found, again = described(capsys, "lines.index", model)
    assert (found["kind"], found["name"], again["kind"]) == ("index", "lines.index", "model")
    assert (found["sentences"], found["search"]) == (45, "exact")
    assert found["columns"]["vector"].endswith("[12]") and found["model"] == str(model)
    assert main(["info", "lines.index", "--check"]) == 0
    assert (
        "  search: exact\n" in (out := capsys.readouterr().out)
        and "all 45 sentences can be read" in out
    )


def test_embeddings(model, lines, tmp_path, capsys):
    embed_files(model, lines, "vectors", shard_lines=20)
    (found,) = described(capsys, "vectors", "--check")
    assert (found["kind"], found["name"], found["rows"]) == ("embeddings", "vectors", 50)
    assert [each["rows"] for each in found["shards"]] == [20, 20, 10]
    assert found["checked"] == "50 embeddings, all shards match their checksums"
    shard = (path := tmp_path / "vectors" / "shard-00001.npy").read_bytes()
    path.write_bytes(shard[:-1] + bytes([shard[-1] ^ 1]))
    assert main(["info", "vectors"]) == 0 and main(["info", "vectors", "--check"]) == 1
    assert "shard-00001.npy: missing or damaged" in capsys.readouterr().err


def test_the_installation(capsys):
    (found,) = described(capsys)
    assert (found["kind"], found["name"]) == (
        "installation of",
        f"st_paragram {st_paragram.__version__}",
    )
    assert found["packages"]["sentence-transformers"] and found["kernels"]


def test_what_is_nothing_of_ours_is_refused_in_one_line(model, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("no store", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (model / TRAINING_FILE).write_text("[]", encoding="utf-8")
    cases = {
        "notes.txt": "notes.txt: a file, but not a pair store; name a model, a pair store (.h5)",
        "none.h5": "none.h5: no such file; check the path",
        "empty": "empty: a folder, but not a model directory; name a model, a pair store",
        "p-sp-zz": "no such folder",
        ".": "",
        "p-sp-xx": "",
    }
    for name, message in cases.items():
        assert main(["info", str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert message in error and str(tmp_path) in error and error.count("\n") == 1
