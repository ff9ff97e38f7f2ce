"""The languages of a multilingual vocabulary.

`languages.safetensors` of an included model has bits for each language, uint8 (ceil(V / 8),), in
the order of `numpy.packbits`: they mark which of the V pieces occur in the training text of this
language.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = "languages.safetensors"


def read_languages(folder: Path) -> dict[str, NDArray[np.uint8]]:
    """Read the packed bits of each language; empty for a model without `languages.safetensors`."""
    from safetensors.numpy import load_file

    path = folder / FILE
    return load_file(path) if path.is_file() else {}
