"""Texts in which a model knows no token: every command leaves them out, counts them, and finds no
similarity.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_paragram.cli.main import main
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.encoding.unit_embeddings import known_texts, unit_embeddings
from st_paragram.errors import SettingsError, TextError
from st_paragram.families.psp.bilstm import BiLSTM
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.cleaning.paraphrases import ParaphraseScore
from st_paragram.tools.comparison import compare
from st_paragram.tools.demo import aligned, nearest
from st_paragram.tools.search.text_search import TextSearch, embed_queries

TATWEEL = "\u0640\u0640"
SCRIPTS = ["გამარჯობა", "სად არის სადგური", "เมื่อวานฝนตก"]
INVISIBLE = ["\u200b", "\ufeff"]
BAD = [*INVISIBLE, TATWEEL, *SCRIPTS]  # further texts that are not blank
BLANK = ["", "   "]
MODELS = ("shipped", "trained", "trained earlier", "prompts", "network")


@pytest.fixture(scope="module", params=MODELS)
def model(request, vocabulary, tmp_path_factory) -> str:
    torch.manual_seed(0)
    if request.param == "shipped":
        return "p-sp-mini"
    folder = tmp_path_factory.mktemp("models") / "model"
    embedding = SentencePieceEmbedding(vocabulary, 16)
    if request.param == "trained earlier":
        embedding = SentencePieceEmbedding(vocabulary, weights=torch.randn(len(vocabulary), 16))
    if request.param == "network":
        network = BiLSTM(16, 8)
        modules = [embedding, network, MeanPool(network.get_embedding_dimension())]
        made = SentenceTransformer(modules=modules, device="cpu", similarity_fn_name="cosine")
    else:
        prompts = {"query": "ba ce ", "document": "di "} if request.param == "prompts" else {}
        made = pipeline(embedding, "cpu", prompts=prompts)
    return str(load_save.save(made, folder))


@pytest.fixture
def texts(pairs):
    return pairs[:12]


def write(path: Path, lines) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def run(capsys, *arguments) -> str:
    """Run a command and return what it printed to stderr."""
    status = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return printed.out + printed.err


def has_bad_text(line: str) -> bool:
    return any(text in line for text in BAD)


def test_the_rule(model, texts):
    encoder = load_encoder(model)
    mixed = f"{texts[0][0]} {SCRIPTS[0]}"
    sentences = [*BLANK, *BAD, mixed, texts[0][0]]
    expected = [False] * 8 + [True] * 2
    for method in ("encode", "encode_query", "encode_document"):
        vectors, known = unit_embeddings(encoder, sentences, method)
        assert known.tolist() == expected
        assert not vectors[~known].any()
        np.testing.assert_allclose(np.linalg.norm(vectors[known], axis=1), 1, atol=1e-6)
    assert known_texts(encoder, sentences).tolist() == expected
    assert unit_embeddings(encoder, []).known.tolist() == []


def test_mine(model, texts, tmp_path, capsys):
    source = write(tmp_path / "a", [*BAD, *(a for a, _ in texts)])
    target = write(tmp_path / "b", [*(b for _, b in texts), *BAD])
    output = tmp_path / "m.tsv"
    options = [
        "--model",
        model,
        "--output",
        output,
        "--neighbors",
        2,
        "--margin",
        "absolute",
        "--threshold",
        -1,
    ]
    printed = run(capsys, "mine", "--source", source, "--target", target, *options)
    assert printed.count("4 without a known token") == 2
    rows = output.read_text(encoding="utf-8").splitlines()
    assert rows and not any(map(has_bad_text, rows))
    plain = [
        write(tmp_path / "c", (a for a, _ in texts)),
        write(tmp_path / "d", (b for _, b in texts)),
    ]
    run(capsys, "mine", "--source", plain[0], "--target", plain[1], *options, "--overwrite")
    assert output.read_text(encoding="utf-8").splitlines() == rows


def test_mine_paraphrases(model, texts, tmp_path, capsys):
    source = write(tmp_path / "a", [*BAD, *dict.fromkeys(a for a, _ in texts)])
    output = tmp_path / "m.tsv"
    options = [
        "--model",
        model,
        "--output",
        output,
        "--neighbors",
        2,
        "--margin",
        "absolute",
        "--threshold",
        -1,
    ]
    assert "4 without a known token" in run(capsys, "mine", "--paraphrase", source, *options)
    rows = output.read_text(encoding="utf-8").splitlines()
    assert rows and not any(map(has_bad_text, rows))


def test_mine_refuses_a_text_of_unknown_sentences(model, tmp_path, capsys):
    source = write(tmp_path / "a", [*SCRIPTS, TATWEEL])
    options = ["--model", model, "--output", tmp_path / "m.tsv", "--neighbors", 2]
    assert main([*map(str, ["mine", "--paraphrase", source, *options])]) == 1
    error = capsys.readouterr().err
    assert "too few distinct sentences with a token that the model knows; give more text" in error


def test_align(model, texts, tmp_path, capsys):
    source = write(tmp_path / "a", [texts[0][0], *BLANK, *BAD, *(a for a, _ in texts[1:])])
    target = write(tmp_path / "b", [*(b for _, b in texts), *BAD])
    options = ["--model", model, "--output", tmp_path / "o.tsv", "--skip-cost", 2]
    printed = run(capsys, "align", "--source", source, "--target", target, *options)
    assert "12 without a known token (skipped)" in printed
    rows = (tmp_path / "o.tsv").read_text(encoding="utf-8").splitlines()
    assert rows and not any(map(has_bad_text, rows))
    run(capsys, "align", "--source", source, "--target", target, *options, "--all", "--overwrite")
    every = [
        line.split("\t") for line in (tmp_path / "o.tsv").read_text(encoding="utf-8").splitlines()
    ]
    bad_rows = [row for row in every if has_bad_text("".join(row))]
    assert len(bad_rows) == 12 and all(row[0] == "0.000000" and "" in row[1:] for row in bad_rows)


def test_score(model, texts, tmp_path, capsys):
    pairs = [
        texts[0],
        *((text, text) for text in BAD),
        (texts[1][0], SCRIPTS[0]),
        ("", texts[1][0]),
        texts[2],
    ]
    source = write(tmp_path / "p.tsv", ("\t".join(pair) for pair in pairs))
    output = tmp_path / "s.tsv"
    printed = run(capsys, "score", source, "--model", model, "--output", output)
    assert "1 with a blank side, 7 with a side in which the model knows no token" in printed
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    assert [tuple(row[1:]) for row in rows] == pairs
    assert [row[0] for row in rows[1:9]] == ["0.000000"] * 8
    for margin, score in (("distance", "-1.000000"), ("ratio", "0.000000")):
        options = ["--background", "self", "--neighbors", 2, "--margin", margin, "--overwrite"]
        run(capsys, "score", source, "--model", model, "--output", output, *options)
        rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
        assert [row[0] for row in rows[1:9]] == [score] * 8


def test_search(model, texts, tmp_path, capsys):
    encoder = load_encoder(model)
    lines = write(tmp_path / "a", [*BAD, *BLANK, *(a for a, _ in texts)])
    printed = run(capsys, "search", lines, texts[0][0], "--model", model, "-k", 100)
    assert "4 sentences without a known token left out" in printed
    assert not any(has_bad_text(line) for line in printed.splitlines())
    search = TextSearch(Path(lines), encoder)
    assert not any(has_bad_text(hit.sentence) for hit in search.search([texts[0][0]], 100)[0])
    for query in [*BAD, *BLANK]:
        with pytest.raises(SettingsError, match="the model knows no token in it"):
            embed_queries(encoder, [texts[0][0], query])


def test_embed(model, texts, tmp_path, capsys):
    lines = [texts[0][0], *BLANK, *BAD, f"{texts[1][0]} {SCRIPTS[0]}"]
    source = write(tmp_path / "a", lines)
    printed = run(capsys, "embed", source, "--model", model, "--output", tmp_path / "x.npy")
    assert "10 lines in 1 file; 2 blank, 6 without a known token" in printed
    expected = load_encoder(model).encode(lines, show_progress_bar=False)
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), expected, atol=1e-5)


@pytest.mark.parametrize("bad", [*BAD, ""])
def test_cleaning(model, texts, bad):
    score = ParaphraseScore(-1.0, model=model)
    rows = [texts[0], (bad, bad), (texts[1][0], bad)]
    assert score.reject(rows) == [None, "no known token", "no known token"]


def test_evaluation(model, texts, tmp_path, capsys, caplog):
    graded = [(number % 5, a, b) for number, (a, b) in enumerate(texts)]
    rows = [*graded, *((0, text, text) for text in BAD), (1, texts[0][0], SCRIPTS[0])]
    pairs = write(tmp_path / "g.tsv", ("\t".join(map(str, row)) for row in rows))
    translations = write(
        tmp_path / "t.tsv",
        ("\t".join(pair) for pair in [*dict(texts).items(), *zip(BAD, reversed(BAD), strict=True)]),
    )
    queries = [
        (f"q{number}", text) for number, text in enumerate([texts[0][0], texts[1][0], SCRIPTS[0]])
    ]
    documents = [
        ("d0", texts[0][1]),
        ("d1", ""),
        ("d2", texts[1][0]),
        ("d3", SCRIPTS[0]),
        ("d4", "\u200b"),
    ]
    qrels = [("q0", "d0"), ("q1", "d2"), ("q2", "d3")]
    files = [
        write(
            tmp_path / "q.jsonl", (json.dumps({"_id": key, "text": text}) for key, text in queries)
        ),
        write(
            tmp_path / "c.jsonl",
            (json.dumps({"_id": key, "text": text}) for key, text in documents),
        ),
        write(
            tmp_path / "r.tsv", ["query-id\tcorpus-id\tscore", *(f"{a}\t{b}\t1" for a, b in qrels)]
        ),
    ]
    own = ["--queries", files[0], "--corpus", files[1], "--qrels", files[2]]
    run(capsys, "evaluate", model, "--graded", pairs, "--json", tmp_path / "p.json")
    assert "13 of 38 texts: empty, or the model knows no token" in caplog.text
    run(capsys, "evaluate", model, "--translations", translations, "--json", tmp_path / "t.json")
    assert caplog.text.count("6 of 17 texts: empty, or the model knows no token") == 2
    run(capsys, "evaluate", model, *own, "--json", tmp_path / "r.json")
    assert "1 of 3 texts: empty" in caplog.text and "3 of 5 texts: empty" in caplog.text
    found = {
        score["measure"]: score["value"] for score in json.loads((tmp_path / "r.json").read_text())
    }
    # the query without a known token finds nothing
    assert found["recall@10"] == pytest.approx(2 / 3)
    right = [
        score
        for score in json.loads((tmp_path / "t.json").read_text())
        if score["measure"] == "P@1"
    ]
    assert right[0]["value"] <= 12 / 18


def test_the_page(model, texts):
    encoder = load_encoder(model)
    for bad in BAD:
        with pytest.raises(TextError, match="knows no token in"):
            compare(encoder, bad, texts[0][0])
        with pytest.raises(TextError, match="knows no token in the query"):
            nearest(encoder, bad, texts[0][0])
    shown = nearest(encoder, texts[0][0], "\n".join([*BAD, texts[0][0]]))
    assert [row[1:] for row in shown] == [[texts[0][0], str(len(BAD) + 1)]]
    rows = aligned(encoder, f"{SCRIPTS[0]}\n{texts[0][0]}", f"{texts[0][0]}\n{SCRIPTS[0]}")
    assert [row[1:] for row in rows if all(row[1:])] == [[texts[0][0], texts[0][0]]]
