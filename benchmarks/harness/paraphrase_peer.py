"""`sentence_transformers.util.paraphrase_mining` in a process of its own, which our mining is compared with.

Run as a program it takes a text, a model, an output and the number of neighbours.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def mine_paraphrases(text: Path, model: Any, output: Path, k: int) -> int:  # noqa: ANN401
    """Mine a text, a sentence a line, none twice; write `cosine TAB one TAB other`, and return the number of pairs.

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

    given_text, given_model, given_output, given_k = sys.argv[1:5]
    count = mine_paraphrases(Path(given_text), load(given_model), Path(given_output), int(given_k))
    sys.stdout.write(f"pairs={count}\n")
