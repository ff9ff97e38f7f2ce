"""Tables of encoding: text to vectors, and text to ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from harness.speed import encoders
from harness.speed.options import Options
from harness.speed.peers import Peer, interleave, one_shot, rows
from harness.speed.report import number
from harness.speed.results import Measure, Table, Unit

OURS = "st_paragram"
_SEVERAL = "several processes, its default for long lists"


def units(options: Options) -> Iterator[Unit]:
    """One unit a table."""
    for threads in options.thread_counts():
        yield Unit(f"first-pass-{threads}-threads", partial(first_pass_table, options, threads))
        yield Unit(f"encode-{threads}-threads", partial(encode_table, options, threads))
        yield Unit(f"tokenize-{threads}-threads", partial(tokenize_table, options, threads))


def arguments(options: Options, threads: int, count: int | None = None, **others: Any) -> dict[str, Any]:  # noqa: ANN401
    """Arguments of a peer that encodes; see `encoders.run`."""
    inputs = options.inputs()
    return {
        "model": str(inputs.model_directory(options.vocab_size, options.dim)),
        "sentences": str(inputs.sentences()),
        "count": options.count if count is None else count,
        "threads": threads,
        "device": options.device,
        "batch_size": None,
        **others,
    }


def encode_peers(options: Options, threads: int) -> list[Peer]:
    """The rows of the table of text to vectors."""
    everything, few = arguments(options, threads), arguments(options, threads, options.slow_count)
    batches = arguments(options, threads, batch_size=1024)
    scaled = f"timed on {options.slow_count:,} sentences"
    plain = {"ST_PARAGRAM_NATIVE": "0"}
    peers = [
        Peer(OURS, encoders.run, "light", everything, note="Encoder(dir).encode(list)"),
        Peer("st_paragram.load", encoders.run, "native", everything, note="st_paragram.load(dir).encode(list)"),
        Peer(
            "st_paragram, NumPy only", encoders.run, "light", everything, environment=plain, note="no compiled kernels"
        ),
        Peer("stock export", encoders.run, "stock", everything, note="SentenceTransformer(dir).encode(list)"),
        Peer("stock export, batch 1024", encoders.run, "stock", batches, note="encode(list, batch_size=1024)"),
        Peer("model2vec", encoders.run, "model2vec", everything, note=_SEVERAL if threads > 1 else "one process"),
        Peer("fastText", encoders.run, "fasttext", everything, note="get_sentence_vector, has no threads"),
        Peer("all-MiniLM-L6-v2", encoders.run, "minilm", few, note=f"a transformer; {scaled}"),
        Peer("LaBSE", encoders.run, "labse", few, note=f"a transformer; {scaled}"),
        Peer("LASER 2", encoders.run, "laser", few, note=f"an LSTM; {scaled}"),
        Peer("sentencepiece alone", encoders.run, "sentencepiece", everything, note="its batch call; no vectors"),
        Peer("tokenizers alone", encoders.run, "tokenizers", everything, note="encode_batch of 1024; no vectors"),
    ]
    return chosen(options, peers, threads)


def chosen(options: Options, peers: list[Peer], threads: int) -> list[Peer]:
    """The peers asked for (ours always), with so many threads."""
    return [replace(peer, threads=threads) for peer in peers if peer.name == OURS or options.wanted(peer.name)]


def first_pass_table(options: Options, threads: int) -> Table:
    """Text to vectors in new processes, which meet every word for the first time."""
    peers = encode_peers(options, threads)
    processes = one_shot(peers, options.rounds, title=f"first pass, threads: {threads}")
    return Table(
        f"first-pass-{threads}-threads",
        f"Text to vectors, first pass, {_threads(threads)}",
        "sentences/s",
        Measure.RATE,
        rows(processes, memory=True),
        OURS,
        notes=[f"{options.count:,} sentences in memory, in a new process each time; {_model(options)}."],
    )


def encode_table(options: Options, threads: int) -> Table:
    """Text to vectors, over and over in one process."""
    peers = encode_peers(options, threads)
    processes = interleave(peers, options.rounds, title=f"encode, threads: {threads}")
    table_rows = rows(processes, memory=True)
    for row, process in zip(table_rows, processes, strict=True):
        if row.rounds and process.first is not None:
            row.columns["first round"] = number(process.first.value(Measure.RATE))
    return Table(
        f"encode-{threads}-threads",
        f"Text to vectors, {_threads(threads)}",
        "sentences/s",
        Measure.RATE,
        table_rows,
        OURS,
        notes=[
            f"{options.count:,} sentences in memory, a list of strings to a matrix; {_model(options)}.",
            "First round: this text seen for the first time, when the caches of words that ours and tokenizers keep "
            "are empty; it is no part of the median.",
        ],
    )


def tokenize_table(options: Options, threads: int) -> Table:
    """Text to ids: a first pass over text, further passes, and sentencepiece."""
    everything = arguments(options, threads)
    peers = [
        Peer(OURS, encoders.run, "fresh_words", everything, note="a first pass: loads the tokenizer, meets every word"),
        Peer("further passes", encoders.run, "word_cache", everything, note="every word was met in a round before"),
        Peer(
            "sentencepiece alone",
            encoders.run,
            "sentencepiece",
            everything,
            note="its batch call, without lower-casing",
        ),
    ]
    processes = interleave(chosen(options, peers, threads), options.rounds, title=f"tokenize, threads: {threads}")
    return Table(
        f"tokenize-{threads}-threads",
        f"Text to ids, {_threads(threads)}",
        "sentences/s",
        Measure.RATE,
        rows(processes, memory=True),
        OURS,
        notes=[f"{options.count:,} sentences in memory. A word counts as met from its second occurrence on."],
    )


def _threads(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _model(options: Options) -> str:
    folder = options.inputs().model_directory(options.vocab_size, options.dim)
    pieces, dim = encoders.table_shape(folder)
    name = "a random model" if options.model is None else f"model {folder.name}"
    return f"{name} of {pieces:,} pieces and {dim:,} components"
