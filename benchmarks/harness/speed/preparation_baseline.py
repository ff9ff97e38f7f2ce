"""The preparation as it is commonly written, row by row: sort, drop repeated lines, shuffle, filter, encode, write.

It follows the steps of the scripts that came with the papers (sorted lines made unique, a shuffle, a length filter,
sentencepiece, HDF5) in plain Python, all in memory, and is what our preparation is compared with. Run as a program it
takes a text, a sentencepiece model and an output.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import sentencepiece


def prepare_baseline(text: Path, model: Path, output: Path, max_pieces: int = 100) -> dict[str, float]:
    """Prepare a text of two tab-separated columns, without compression.

    The filters are those of `st-paragram prepare` for scripts with spaces: 3 to 100 words on both sides.

    Returns:
        Seconds of each step, and `pairs`, the number written.
    """
    times, started = dict[str, float](), time.perf_counter()

    def lap(step: str) -> None:
        nonlocal started
        now = time.perf_counter()
        times[step], started = now - started, now

    with text.open(encoding="utf-8", newline="\n") as handle:
        rows = [" \t ".join(line.lower().split("\t")).split(" ") for line in handle]
    lines = [" ".join(word for word in row if word).strip() for row in rows]
    lap("read")
    lines = sorted(set(lines))
    lap("sort")
    random.Random(0).shuffle(lines)
    lap("shuffle")
    pairs = []
    for line in lines:
        first, second = line.split("\t")
        if 3 <= len(first.split()) <= 100 and 3 <= len(second.split()) <= 100:
            pairs.append((first.strip(), second.strip()))
    lap("filter")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    unknown = processor.unk_id()
    encoded = []
    for pair in pairs:
        ids = [[piece for piece in processor.encode(side)[:max_pieces] if piece != unknown] for side in pair]
        encoded.append([side or [unknown] for side in ids])
    lap("encode")
    with h5py.File(output, "w") as file:
        kind = h5py.vlen_dtype(np.int32)
        sides = [file.create_dataset(name, (len(encoded),), dtype=kind) for name in ("a", "b")]
        for number, row in enumerate(encoded):
            for side, ids in zip(sides, row, strict=True):
                side[number] = np.array(ids, dtype=np.int32)
    lap("write")
    return times | {"pairs": float(len(encoded))}


if __name__ == "__main__":
    given_text, given_model, given_output = map(Path, sys.argv[1:4])
    result = prepare_baseline(given_text, given_model, given_output)
    sys.stdout.write(" ".join(f"{name}={value:.3f}" for name, value in result.items()) + "\n")
