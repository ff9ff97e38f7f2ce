"""An averaging model as an ONNX graph: padded ids and an attention mask to vectors.

Inputs and output have the names that readers of sentence-transformers' ONNX files expect: `input_ids` and
`attention_mask`, int64 (B, L), `sentence_embedding`, float32 (B, D). The ids are the tokenizer's own, the unknown id
included: the graph leaves dropped ids out of the mean, and gives a text without a known token the row of the unknown
id, as `ParagramEncoder` does. Sums and lengths are float32, whatever the type of the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_paragram.conversion.exported_model import ExportedModel, write_tokenizer
from st_paragram.core.extras import require
from st_paragram.core.files import atomic
from st_paragram.core.version import installed_version
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

MODEL_FILE = "model.onnx"
_OPSET, _IR_VERSION = 17, 8  # of 2022: any onnxruntime from 1.13 on reads them
_LARGEST = (1 << 31) - (1 << 24)  # bytes of a table; protobuf's messages end at 2 GiB
_SMALLEST_LENGTH = 1e-12  # as torch.nn.functional.normalize has it


def write_onnx(model: ExportedModel, folder: Path) -> None:
    """Write `model.onnx` and the tokenizer.

    Raises:
        MissingExtraError: onnx is not installed.
        SettingsError: the table is too large for a file of ONNX.
    """
    graph = onnx_model(model)
    require("onnx", "onnx").checker.check_model(graph)
    with atomic(folder / MODEL_FILE) as file:
        file.write(graph.SerializeToString())
    write_tokenizer(model, folder)


def onnx_model(model: ExportedModel) -> ModelProto:
    """The graph with its table.

    Raises:
        MissingExtraError: onnx is not installed.
        SettingsError: the table is too large for a file of ONNX.
    """
    helper: Any = require("onnx", "onnx", "an export to ONNX").helper
    if model.table.nbytes > _LARGEST:
        size = f"{model.table.nbytes / 2**30:.1f} GiB"
        raise SettingsError(f"a table of {size} does not fit into an ONNX file; export it with --dtype int8 or --dim")
    number = helper.np_dtype_to_tensor_dtype
    ids, floats = number(np.dtype("int64")), number(np.dtype("float32"))
    inputs = [helper.make_tensor_value_info(name, ids, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info("sentence_embedding", floats, ["batch", model.dimension])
    graph = helper.make_graph(_nodes(model), "st_paragram", inputs, [output], _constants(model))
    opset = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(  # type: ignore[no-any-return]
        graph,
        opset_imports=opset,
        ir_version=_IR_VERSION,
        producer_name="st_paragram",
        producer_version=installed_version(),
    )


def _constants(model: ExportedModel) -> list[Any]:
    """Arrays that the nodes name."""
    from_array = require("onnx.numpy_helper", "onnx").from_array
    known = np.ones(len(model.table), dtype=np.float32)
    known[model.dropped_ids] = 0
    constants = {
        "table": model.table_without(model.dropped_ids),
        "known": known,
        "unknown_id": np.array(model.unknown_id),
        "unknown_embedding": model.unknown_embedding,
        "one": np.array(1, dtype=np.float32),
        "zero": np.array(0, dtype=np.float32),
        "tokens_axis": np.array([1]),
    }
    if model.scale is not None:
        constants["scale"] = model.scale
    if model.normalize:
        constants["smallest_length"] = np.array(_SMALLEST_LENGTH, dtype=np.float32)
    return [from_array(array, name) for name, array in constants.items()]


def _nodes(model: ExportedModel) -> list[NodeProto]:
    """The operations: places without a token are unknown ones, whose row is zero and which do not count."""
    onnx = require("onnx", "onnx")
    node, kinds = onnx.helper.make_node, onnx.TensorProto
    return [
        node("Cast", ["attention_mask"], ["is_token"], to=kinds.BOOL),
        node("Where", ["is_token", "input_ids", "unknown_id"], ["ids"]),
        node("Gather", ["table", "ids"], ["stored_rows"]),
        node("Cast", ["stored_rows"], ["rows"], to=kinds.FLOAT),
        *_sum(model, node),
        node("Gather", ["known", "ids"], ["are_known"]),
        node("ReduceSum", ["are_known", "tokens_axis"], ["counts"], keepdims=1),
        node("Max", ["counts", "one"], ["divisors"]),
        node("Div", ["sums", "divisors"], ["means"]),
        node("Greater", ["counts", "zero"], ["has_known"]),
        node("Where", ["has_known", "means", "unknown_embedding"], ["vectors"]),
        *_ending(model, node),
    ]


def _sum(model: ExportedModel, node: Any) -> list[NodeProto]:  # noqa: ANN401
    """Sums of rows (B, D); those of an int8 table times their scales, which is a product of matrices."""
    if model.scale is None:
        return [node("ReduceSum", ["rows", "tokens_axis"], ["sums"], keepdims=0)]
    return [
        node("Gather", ["scale", "ids"], ["scales"]),
        node("Unsqueeze", ["scales", "tokens_axis"], ["scales_of_texts"]),
        node("MatMul", ["scales_of_texts", "rows"], ["sums_of_texts"]),
        node("Squeeze", ["sums_of_texts", "tokens_axis"], ["sums"]),
    ]


def _ending(model: ExportedModel, node: Any) -> list[NodeProto]:  # noqa: ANN401
    if not model.normalize:
        return [node("Identity", ["vectors"], ["sentence_embedding"])]
    return [
        node("ReduceL2", ["vectors"], ["lengths"], axes=[1], keepdims=1),
        node("Max", ["lengths", "smallest_length"], ["positive_lengths"]),
        node("Div", ["vectors", "positive_lengths"], ["sentence_embedding"]),
    ]
