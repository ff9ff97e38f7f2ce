"""`st-paragram info`: what it tells of models, stores, indexes and the installation, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import st_paragram
from st_paragram import SearchIndex
from st_paragram.cli import info
from st_paragram.cli.main import main
from st_paragram.core.encoding.directory import TRAINING_FILE
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.embed_files import embed_files

CARD = "---\nlanguage:\n- en\nlicense: cc-by-4.0\n---\n# p-sp-xx\n\nlicense: none of this\n"


@pytest.fixture
def model(tmp_path, vocabulary):
    embedding = SentencePieceEmbedding(vocabulary, 12, dropout=0.1)
    return model_directory.save(pipeline(embedding, device="cpu"), tmp_path / "p-sp-xx", card=CARD)


def described(capsys, *names):
    assert main(["info", *map(str, names), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_model_tells_its_properties_licence_and_checksums(model, vocabulary, capsys, monkeypatch):
    (found,) = described(capsys, model)
    assert (found["kind"], found["name"], found["architecture"]) == ("model", "p-sp-xx", "averaging")
    assert found["properties"].items() >= {"embedding_dimension": 12, "vocabulary_size": len(vocabulary)}.items()
    assert (found["licence"], found["training"]) == ("cc-by-4.0", None)
    files = {file.name: file.read_bytes() for file in model.iterdir()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert found["files"] == {name: {"size": len(files[name]), "sha256": digests[name]} for name in files}
    monkeypatch.chdir(model.parent)
    assert main(["info", "p-sp-xx"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("model p-sp-xx\n  architecture: averaging\n") and digests["README.md"] in shown
    assert "  licence: cc-by-4.0\n  training: none\n  files\n" in shown


def test_a_store_tells_its_languages_and_preparation(store, vocabulary, capsys):
    (found,) = described(capsys, store.path)
    assert (found["kind"], found["languages"], found["pairs"]) == ("pair store", ["en", "xx"], 700)
    options = {"lower_case": True, "segmentation": "none"}
    assert found["vocabularies"][0].items() >= {"kind": "sentencepiece", "ids": len(vocabulary), **options}.items()
    assert [side["language"] for side in found["sides"]] == ["en", "xx"] and len(found["examples"]) == 3
    assert found["settings"] == {"note": "made for tests"}
    assert list(found["files"]) == ["en-xx.h5"]


def test_counts_are_told_in_a_line_and_long_lists_are_cut(model, capsys, monkeypatch):
    sources = [
        {"name": f"{number}.tsv", "rows": 0, "dropped": {"too short": number, "too long": 0}} for number in range(14)
    ]
    found = {
        "name": "m",
        "report": {"sources": sources, "all": {"too short": 0}},
        "scores": [{"of": [1, 2]}],
        "dropout": 0,
    }
    monkeypatch.setattr(info, "_describe", lambda name, check: ("model", found))
    assert main(["info", "m"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "model m",
        "  report",
        "    sources",
        "      name 0.tsv, rows 0, dropped (none)",
        "      name 1.tsv, rows 0, dropped (too short 1)",
    ]
    assert lines[15:] == ["      ... (14 in all)", "    all: none", "  scores", "    of (1, 2)", "  dropout: 0"]


def test_an_index_tells_its_model_and_size(model, pairs, tmp_path, capsys):
    source = tmp_path / "lines.txt"
    source.write_text("".join(f"{text}\n" for text, _ in pairs[:50]), encoding="utf-8")
    SearchIndex.build(source, tmp_path / "lines.index", str(model))
    found, again = described(capsys, tmp_path / "lines.index", model)
    assert (found["kind"], found["name"], again["kind"]) == ("index", "lines.index", "model")
    assert (found["sentences"], found["search"], found["versions_kept"]) == (45, "exact", 3)
    assert found["columns"]["vector"].endswith("[12]") and found["model"] == str(model)
    assert main(["info", str(tmp_path / "lines.index"), "--check"]) == 0
    assert "  search: exact\n" in (out := capsys.readouterr().out) and "all 45 sentences can be read" in out


def test_without_a_name_it_tells_of_the_installation(capsys):
    (found,) = described(capsys)
    assert (found["kind"], found["name"]) == ("installation of", f"st_paragram {st_paragram.__version__}")
    assert found["packages"]["sentence-transformers"] and found["kernels"]


def test_models_and_stores_are_described_without_torch(model, store):
    script = (
        "import sys; from st_paragram.cli.main import main; main(['info', *sys.argv[1:]]); "
        "sys.exit(sum(name in sys.modules for name in ('torch', 'sentence_transformers', 'faiss')))"
    )
    subprocess.run([sys.executable, "-c", script, str(model), str(store.path)], check=True, capture_output=True)


def test_what_is_nothing_of_ours_is_refused_in_one_line(model, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("no store", encoding="utf-8")
    (model / TRAINING_FILE).write_text("[]", encoding="utf-8")
    cases = {"notes.txt": "notes.txt: not a readable pair store", "p-sp-zz": "no such folder", ".": "", "p-sp-xx": ""}
    for name, message in cases.items():
        assert main(["info", str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert message in error and str(tmp_path) in error and error.count("\n") == 1


def test_the_description_of_another_pipeline_is_read_from_its_directory(tmp_path, vocabulary, capsys):
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="a"))
    pipeline_of_others = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    folder = model_directory.save(pipeline_of_others, tmp_path / "static")
    (found,) = described(capsys, folder)
    assert found["architecture"] == "modules"


def test_a_model_is_checked_where_it_is_asked_for(model, capsys):
    assert main(["info", str(model), "--check"]) == 0
    assert "  checked: embeddings of 12 components, and all numbers are finite\n" in capsys.readouterr().out
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:-4] + np.float32(np.nan).tobytes())
    assert main(["info", str(model)]) == 0
    assert main(["info", str(model), "--check"]) == 1
    assert "NaN, infinite" in capsys.readouterr().err


def test_embeddings_are_told_and_checked(model, pairs, tmp_path, capsys):
    folder, source = tmp_path / "vectors", tmp_path / "lines.txt"
    source.write_text("".join(f"{text}\n" for text, _ in pairs[:50]), encoding="utf-8")
    embed_files(model, source, folder, shard_lines=20)
    (found,) = described(capsys, folder, "--check")
    assert (found["kind"], found["name"], found["properties"]["rows"]) == ("embeddings", "vectors", 50)
    assert len(found["files"]) == 3 and found["files"]["shard-00002.npy"]["size"] == 128 + 10 * 12 * 4
    assert found["checked"] == "50 embeddings, and all shards are what was written"
    shard = (folder / "shard-00001.npy").read_bytes()
    (folder / "shard-00001.npy").write_bytes(shard[:-1] + bytes([shard[-1] ^ 1]))
    assert main(["info", str(folder)]) == 0
    assert main(["info", str(folder), "--check"]) == 1
    assert "shard-00001.npy: damaged" in capsys.readouterr().err
    (folder / "shard-00001.npy").unlink()
    assert main(["info", str(folder)]) == 1
    assert "a shard is missing" in capsys.readouterr().err
