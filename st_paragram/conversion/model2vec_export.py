"""An averaging model as model2vec keeps its own: `config.json`, `model.safetensors`, `tokenizer.json`.

model2vec drops the unknown token, too, but its vector of a text without a known token is zero. Pieces that a
tokenizer drops have rows of zeros here and count in the mean: directions are the same. Rows of an int8 table are
multiplied by `weights`; such a model is slower there than one of floats, since model2vec's fast way takes no weights.
Made for and checked with model2vec 0.10.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from st_paragram.conversion.exported_model import ExportedModel
from st_paragram.core.files import write_json


def write_model2vec(model: ExportedModel, folder: Path) -> None:
    """Write the files of model2vec, and `modules.json`, with which sentence-transformers opens them."""
    arrays: dict[str, np.ndarray[Any, Any]] = {"embeddings": model.table_without(model.dropped_ids)}
    if model.scale is not None:
        arrays["weights"] = model.scale
    (folder / "model.safetensors").write_bytes(save(arrays))
    model.tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": model.dimension,
        "embedding_dtype": model.table.dtype.name,
        "normalize": model.normalize,
        "max_length": None,  # nothing is cut off
    }
    write_json(folder / "config.json", config, indent=2)
    package = "sentence_transformers.models"
    modules = [{"idx": 0, "name": "0", "path": "", "type": f"{package}.StaticEmbedding"}]
    if model.normalize:
        modules.append({"idx": 1, "name": "1", "path": "1_Normalize", "type": f"{package}.Normalize"})
        (folder / "1_Normalize").mkdir()  # where Normalize looks for settings, and needs none
        write_json(folder / "1_Normalize" / "config.json", {}, indent=2)
    write_json(folder / "modules.json", modules, indent=2)
