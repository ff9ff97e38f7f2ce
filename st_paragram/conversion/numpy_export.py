"""An averaging model as plain arrays: what `numpy_reader` opens."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from st_paragram.conversion.exported_model import ExportedModel, write_tokenizer


def write_numpy(model: ExportedModel, folder: Path) -> None:
    """Write `embeddings.npy` (V, D), for an int8 table `scale.npy`, float32 (V,), and the tokenizer."""
    np.save(folder / "embeddings.npy", model.table, allow_pickle=False)
    if model.scale is not None:
        np.save(folder / "scale.npy", model.scale, allow_pickle=False)
    write_tokenizer(model, folder)
