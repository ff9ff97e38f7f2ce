"""A small `weights.npz` in the layout of the published weights, and a plain forward pass, one text
at a time.
"""

from __future__ import annotations

import numpy as np

WIDTHS = (2, 3, 5)
DIM, CHANNELS, UNITS, GROUPS = 12, 6, 5, 4


def make_weights(pieces, seed=0):
    """Arrays by name for a vocabulary of at least `pieces` pieces."""
    rng = np.random.default_rng(seed)
    rows = -(-pieces // GROUPS)

    def draw(*shape):
        return rng.normal(0, 0.5, shape).astype(np.float32)

    weights = {
        f"q{group + 1}": rng.integers(0, 64, (rows, DIM), dtype=np.uint8) for group in range(GROUPS)
    }
    weights |= {"scale": rng.uniform(0.1, 0.3, GROUPS).astype(np.float32), "lo": draw(GROUPS) - 5}
    weights["bits"] = np.array([6], np.int8)
    for width in WIDTHS:
        weights |= {f"proj{width}": draw(DIM, CHANNELS), f"proj_b{width}": draw(CHANNELS)}
        weights |= {f"ln_g{width}": draw(CHANNELS), f"ln_b{width}": draw(CHANNELS)}
        for layer in (1, 2):
            weights |= {
                f"w{layer}_{width}": draw(width * CHANNELS, CHANNELS),
                f"b{layer}_{width}": draw(CHANNELS),
            }
    features = DIM + len(WIDTHS) * CHANNELS
    weights |= {
        "ln_g": draw(features),
        "ln_b": draw(features),
        "cnn_W": draw(features, DIM),
        "cnn_b": draw(DIM),
    }
    weights |= {"d0": draw(DIM, UNITS), "p1": draw(DIM, UNITS), "d1": draw(UNITS, UNITS)}
    weights |= {
        "d2": draw(UNITS, DIM),
        "p3": draw(UNITS, DIM),
        "d3": draw(DIM, DIM),
        "eps": np.float64(1e-12),
    }
    return weights


def embed_plainly(weights, ids):
    """The unit vector of one text's ids, float64 (DIM,), piece by piece and window by window."""
    w = {name: np.asarray(array, np.float64) for name, array in weights.items()}
    rows = []
    for piece in ids:
        block, row = piece % GROUPS, piece // GROUPS
        rows.append(w[f"q{block + 1}"][row] * w["scale"][block] + w["lo"][block])
    states = [
        np.concatenate([row @ w[f"proj{n}"] + w[f"proj_b{n}"] for n in WIDTHS]) for row in rows
    ]
    scale, shift = (np.concatenate([w[f"{name}{n}"] for n in WIDTHS]) for name in ("ln_g", "ln_b"))
    states = [_normal(state) * scale + shift for state in states]
    parts = []
    for number, width in enumerate(WIDTHS):
        hidden = [state[number * CHANNELS : (number + 1) * CHANNELS] for state in states]
        for layer in (1, 2):
            kernel, bias = w[f"w{layer}_{width}"], w[f"b{layer}_{width}"]
            hidden = [
                hidden[i] + np.maximum(_window(hidden, i, width) @ kernel + bias, 0)
                for i in range(len(ids))
            ]
        parts.append(hidden)
    total = np.zeros(DIM)
    for place in zip(rows, *parts, strict=True):
        total += (_normal(np.concatenate(place)) * w["ln_g"] + w["ln_b"]) @ w["cnn_W"] + w["cnn_b"]
    mean = total / len(ids) ** 0.5
    first = np.maximum(mean @ w["d0"], 0)
    second = np.maximum(mean @ w["p1"] + first @ w["d1"], 0)
    third = np.maximum(second @ w["d2"], 0)
    vector = np.tanh(second @ w["p3"] + third @ w["d3"])
    return vector / np.linalg.norm(vector)


def _normal(row):
    return (row - row.mean()) / np.sqrt(row.var() + 1e-12)


def _window(hidden, place, width):
    places = range(place - (width - 1) // 2, place - (width - 1) // 2 + width)
    return np.concatenate(
        [hidden[i] if 0 <= i < len(hidden) else np.zeros(CHANNELS) for i in places]
    )
