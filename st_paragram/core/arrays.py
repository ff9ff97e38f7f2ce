"""Types of numpy arrays; docstrings state the shapes."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]
