"""Mine texts with known pairs by every margin, and say how many were found."""

from __future__ import annotations

from pathlib import Path

from harness.mining_process import WatchedMining, watch_mining
from harness.mining_scores import Scored, read_mined, score_mined
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.evaluation.bucc_files import read_bucc
from st_paragram.tools.search.settings import AUTO


def mine_known(
    prefix: Path, pair: str, model: str, folder: Path, k: int, memory: int, index: str = AUTO, seed: int = 0
) -> tuple[Scored, WatchedMining]:
    """Mine PREFIX.zh and PREFIX.en by ids, by every margin from one work folder, and score against PREFIX.gold.

    Args:
        prefix: Of three files as BUCC's.
        pair: Codes of the languages, "zh-en".
        model: To embed with.
        folder: For the work and the pairs.
        k: Neighbours.
        memory: Bytes that mining may take.
        index: See `MiningSettings`.
        seed: Of the halves.

    Returns:
        The scores, and the first mining: the others only score and choose again.

    Raises:
        TextError: The files are not of that form.
    """
    texts = read_bucc(prefix, pair)
    files = [Path(f"{prefix}.{code}") for code in pair.split("-")]
    runs, pairs = [], {}
    for margin in (Margin.ABSOLUTE, Margin.RATIO, Margin.DISTANCE):
        settings = MiningSettings(
            k=k, margin=margin, candidates=Candidates.MAX, index=index, memory=memory, with_ids=True
        )
        output = folder / f"{margin.value}.tsv"
        runs.append(watch_mining(files, output, model, settings, folder / "work"))
        pairs[margin] = read_mined(output, texts)
    return score_mined(pairs, texts, seed), runs[0]
