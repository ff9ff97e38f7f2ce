"""Programs that our mining is compared with; run as `python -m harness.mining.simple bitext|paraphrases ...`.

`bitext` mines as it is commonly written: everything in memory, one flat index a side, a loop over all candidates. It
follows the description of Artetxe and Schwenk (ACL 2019): neighbors both ways, ratio margin, the best neighbor of
each sentence either way, then best pairs first, each sentence once. `paraphrases` calls
`sentence_transformers.util.paraphrase_mining`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pair = tuple[float, int, int]


def flat_search(
    queries: NDArray[np.float32], corpus: NDArray[np.float32], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Cosines and rows of the k nearest, (n, k) each, by one flat index of the whole corpus."""
    import faiss

    index = faiss.IndexFlatIP(corpus.shape[1])
    index.add(corpus)
    similarities, rows = index.search(queries, k)
    return similarities, rows


def mine_baseline(source: NDArray[np.float32], target: NDArray[np.float32], k: int = 4) -> list[Pair]:
    """Pairs (score, source row, target row) by ratio margin, best first, each row once.

    Args:
        source: float32 (n, D), rows of length 1.
        target: float32 (m, D), rows of length 1.
        k: neighbors.
    """
    forward, forward_rows = flat_search(source, target, k)
    backward, backward_rows = flat_search(target, source, k)
    forward_mean, backward_mean = forward.mean(axis=1), backward.mean(axis=1)
    candidates = []
    for one in range(len(source)):
        scores = forward[one] / ((forward_mean[one] + backward_mean[forward_rows[one]]) / 2)
        best = int(scores.argmax())
        candidates.append((float(scores[best]), one, int(forward_rows[one, best])))
    for other in range(len(target)):
        scores = backward[other] / ((backward_mean[other] + forward_mean[backward_rows[other]]) / 2)
        best = int(scores.argmax())
        candidates.append((float(scores[best]), int(backward_rows[other, best]), other))
    candidates.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    pairs, sources, targets = [], set[int](), set[int]()
    for score, one, other in candidates:
        if one not in sources and other not in targets:
            sources.add(one)
            targets.add(other)
            pairs.append((score, one, other))
    return pairs


def mine_files_baseline(source: Path, target: Path, model: Any, output: Path, k: int = 4) -> dict[str, float]:  # noqa: ANN401
    """Mine two texts, one sentence per line, none twice; write `score TAB source TAB target`.

    Returns:
        Seconds of each step, and `pairs`, the number written.
    """
    started = time.perf_counter()
    texts = [path.read_text(encoding="utf-8").removesuffix("\n").split("\n") for path in (source, target)]
    first, second = (model.encode(text, normalize_embeddings=True, show_progress_bar=False) for text in texts)
    embedded = time.perf_counter()
    pairs = mine_baseline(first, second, k)
    mined = time.perf_counter()
    with output.open("w", encoding="utf-8", newline="\n") as file:
        for score, one, other in pairs:
            file.write(f"{score:.6f}\t{texts[0][one]}\t{texts[1][other]}\n")
    written = time.perf_counter()
    times = {"embed": embedded - started, "search": mined - embedded, "write": written - mined}
    return times | {"pairs": float(len(pairs))}


def mine_paraphrases(text: Path, model: Any, output: Path, k: int) -> int:  # noqa: ANN401
    """Mine a text, one sentence per line, none twice; write `cosine TAB one TAB other`, and return the number of pairs.

    No pair is dropped for there being too many, and batches are as large as our own.
    """
    from sentence_transformers.util import paraphrase_mining

    sentences = text.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    pairs = paraphrase_mining(model, sentences, top_k=k, max_pairs=k * len(sentences), batch_size=4096)
    with output.open("w", encoding="utf-8", newline="\n") as file:
        for score, one, other in pairs:
            file.write(f"{score:.6f}\t{sentences[int(one)]}\t{sentences[int(other)]}\n")
    return len(pairs)


if __name__ == "__main__":
    from st_paragram.learning.models.directory import load

    kind, *given, name, written, neighbors = sys.argv[1:]
    paths, encoder, pairs_file, nearest = list(map(Path, given)), load(name), Path(written), int(neighbors)
    if kind == "bitext":
        mine_files_baseline(paths[0], paths[1], encoder, pairs_file, nearest)
    else:
        mine_paraphrases(paths[0], encoder, pairs_file, nearest)
