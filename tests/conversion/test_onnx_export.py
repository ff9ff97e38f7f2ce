"""Graphs for ONNX Runtime give what the native reader gives."""

import json
import sys

import numpy as np
import pytest
from support.exports import KNOWN, WITHOUT_KNOWN, cosines, ids_of, reader_in, saved_model

import st_paragram
from st_paragram.cli.main import main
from st_paragram.conversion.exports import ExportSettings, export_model
from st_paragram.errors import MissingExtraError

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
TEXTS = [*KNOWN, *WITHOUT_KNOWN]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize(("normalize", "drops"), [(False, False), (True, False), (False, True)])
def test_vectors_are_those_of_the_native_reader(vocabulary, tmp_path, dtype, normalize, drops):
    dropped = ids_of(vocabulary, "ba ce") if drops else ()
    source = saved_model(vocabulary, tmp_path / "model", dropped)
    folder = export_model(source, tmp_path / "o", "onnx", ExportSettings(dtype, 30, normalize))
    small = tmp_path / "small"
    assert main(["export", str(source), str(small), "--dtype", dtype, "--dim", "30"]) == 0
    native = st_paragram.load(small, device="cpu").encode(TEXTS, normalize_embeddings=normalize)
    encoder = reader_in(folder)(folder, threads=1)
    for batch_size in (1, 3, 32):
        rows = encoder.encode(TEXTS, batch_size)
        assert (rows.dtype, rows.shape) == (np.float32, native.shape)
        np.testing.assert_allclose(rows, native, rtol=1e-4, atol=2e-6)
    assert cosines(rows, native).min() > 0.999999
    assert encoder.encode([]).shape == (0, 30)


def test_the_graph_drops_unknown_ids_and_padding(vocabulary, tmp_path):
    """By hand: a mean of two rows, the unknown row, and a text of nothing but padding."""
    source = saved_model(vocabulary, tmp_path / "model", dimension=4)
    folder = export_model(source, tmp_path / "o", "onnx")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    table = st_paragram.load(source)[0].embedding.weight.detach().numpy()
    unknown = vocabulary.unknown_id
    ids = np.array([[5, unknown, 7], [unknown, unknown, 9], [9, 9, 9]])
    mask = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]])
    (rows,) = session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": mask})
    expected = [(table[5] + table[7]) / 2, table[unknown], table[unknown]]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_command_and_contents(vocabulary, tmp_path, capsys):
    source, output = saved_model(vocabulary, tmp_path / "m"), tmp_path / "o"
    (source / "README.md").write_text("---\nlicense: mit\n---\n\n# m\n\nIts card.\n")
    command = ["export", str(source), str(output), "--to", "onnx", "--normalize"]
    assert main(command) == 0
    assert "MB for onnx" in capsys.readouterr().err
    files = {"README.md", "model.onnx", "reader.py", "sentencepiece.model", "st_paragram_export.json"}
    assert {path.name for path in output.iterdir()} == files | {"tokenizer.json"}
    card = (output / "README.md").read_text()
    assert card.startswith("---\nlicense: mit\n---\n\n# o\n") and "length 1" in card and "Its card." in card
    assert json.loads((output / "st_paragram_export.json").read_text())["normalize"] is True
    assert main(command) == 1
    assert "exists" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert main(["export", str(source), str(source), "--to", "onnx", "--overwrite"]) == 1
    assert "is not a model export of st_paragram" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["no graph", "other components", "no vocabulary", "not finite"])
def test_a_damaged_export_is_refused_in_a_line(vocabulary, tmp_path, capsys, damage):
    folder = export_model(saved_model(vocabulary, tmp_path / "m"), tmp_path / "o", "onnx")
    graph = (folder / "model.onnx").read_bytes()
    if damage == "no graph":
        (folder / "model.onnx").write_bytes(graph[: len(graph) // 2])
    elif damage == "not finite":
        weight = st_paragram.load(tmp_path / "m", device="cpu")[0].embedding.weight.detach().numpy()
        row = weight[5].tobytes()
        assert graph.count(row) == 1
        (folder / "model.onnx").write_bytes(graph.replace(row, np.full_like(weight[5], np.nan).tobytes()))
    elif damage == "no vocabulary":
        (folder / "sentencepiece.model").write_bytes(b"nonsense")
    else:
        path = folder / "st_paragram_export.json"
        path.write_text(path.read_text().replace('"dimension": 37', '"dimension": 38'))
    with pytest.raises(ValueError, match="export the model again") as caught:
        reader_in(folder)(folder).encode([vocabulary.decode([5])])
    assert str(caught.value).startswith(f"{folder}: ") and str(caught.value).isprintable()
    assert capsys.readouterr().out == ""


def test_without_onnx_it_says_what_to_install(vocabulary, tmp_path, monkeypatch):
    source = saved_model(vocabulary, tmp_path / "m")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"st_paragram\[onnx\]"):
        export_model(source, tmp_path / "o", "onnx")
    assert not (tmp_path / "o").exists()
