"""Text of all kinds, plain and compressed, whole and damaged: refused, or as many finite rows as it has lines.

Lines end at newlines and nowhere else; carriage returns at their ends and a byte order mark at the beginning of the
text do not count. What was compressed has checksums, so damage to it may never give other lines.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from support.data import make_pairs

from hostile.damage import damaged
from st_paragram.core.text import streams
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.tools.embed_files import embed_file

TRIES, QUICK = 20_000, 100

_COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"PK", b"\xff\xfe", b"\xfe\xff", b"\x28\xb5\x2f\xfd")
_PARTS = (
    *("ba ce di", "\t", "\t", "\n", "\n", "\n", "\r\n", "\r", " ", "\u3000", "\xa0", "\x85", "\u2028", "\x1c", "\x0b"),
    *("\0", "\ufeff", "\u202e", "\u0628\u064e", "\u0e33", "e\u0301" * 40, "\U0001f468\u200d\U0001f469", "\ufb03", "Ω"),
    *("한국어", "中文字", "ﾊﾟ", "\U0010ffff", "\ue000", "\u2581", "x" * 3000, "\u0300" * 500, "İ", "ẞ", "\ufffe", "<s>"),
)
_BROKEN = (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80", b"\x80", b"\xfe\xff", b"\xef\xbb")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_SURROGATES = ("\ud800", "a\udc80b", "\ud83d \ude00", "\udfff\n")


def draw_text(rng: np.random.Generator) -> str:
    """A text of words of the vocabulary, hard characters, any code points, and now and then half a character."""
    parts: list[str] = []
    for _ in range(rng.integers(0, 9)):
        kind = rng.integers(8)
        if kind < 5:
            parts.append(_PARTS[rng.integers(len(_PARTS))])
        elif kind < 7:
            parts.append("".join(map(chr, rng.integers(0, 0x3000, rng.integers(1, 6)))))
        else:
            parts.append(_SURROGATES[rng.integers(len(_SURROGATES))])
    return ("", " ")[rng.integers(2)].join(parts)


def prepare(folder: Path) -> Any:
    """A small model."""
    torch.manual_seed(0)
    vocabulary = train_vocabulary((text for pair in make_pairs(300) for text in pair), 120)
    return pipeline(SentencePieceEmbedding(SentencePieceTokenizer(vocabulary), 4), device="cpu")


def attempt(shared: Any, rng: np.random.Generator, folder: Path) -> str:
    """Read and embed a text."""
    plain = _text(rng)
    ending, data, expected = _packed(plain, rng)
    path = folder / f"text{ending}"
    path.write_bytes(data)
    blocks = int(rng.choice([1, 2, 7, 64, 1 << 18]))
    with mock.patch.object(streams, "BLOCK_BYTES", blocks):
        if rng.random() < 0.1:
            return _zipped(folder / "text.zip", rng)
        if rng.random() < 0.3:
            return _pairs(path, rng)
        lines = list(read_lines(str(path)))
        if expected is not None and lines != _lines(expected):
            return f"wrong: {len(lines)} lines, which are not those of the text"
        output = folder / "rows.npy"
        embed_file(shared, str(path), output)
        rows = np.load(output)
    return _judged(rows, len(lines)) or _encoded(shared, lines, rng)


def _judged(rows: Any, count: int) -> str | None:
    if rows.shape != (count, 4) or not np.isfinite(rows).all():
        return f"wrong: rows of shape {rows.shape} for {count} lines, or rows that are not finite"
    return None


def _encoded(model: Any, lines: list[str], rng: np.random.Generator) -> str:
    """Encode the lines in memory, with surrogates that no file can hold."""
    texts = [*lines[:50], _SURROGATES[rng.integers(len(_SURROGATES))]]
    return _judged(model.encode(texts), len(texts)) or "embedded"


def _pairs(path: Path, rng: np.random.Generator) -> str:
    """Read it as parallel text."""
    counts, further = ReadCounts(), int(rng.integers(2))
    source = TextSource((str(path),), ("en", "xx"), further_columns=further, swapped=bool(rng.integers(2)))
    if rng.random() < 0.3:
        source = TextSource((str(path), str(path)), ("en", "xx"))
    pairs = list(read_pairs(source, counts, drop_invalid=bool(rng.integers(2))))
    dropped = counts.nul_rows + counts.invalid_rows + counts.wrong_columns
    if len(pairs) + dropped != counts.rows or any("\n" in text or "\r" in text for pair in pairs for text in pair):
        return "wrong: rows that were neither kept nor counted"
    return "read as pairs"


def _zipped(path: Path, rng: np.random.Generator) -> str:
    """Read parallel text in a damaged zip archive, whose members have checksums."""
    rows = [(f"ba {number}", "ce") for number in range(int(rng.integers(1, 200)))]
    sides = "\n".join(a for a, _ in rows), "\n".join(b for _, b in rows)
    whole = {"x.tsv": "\n".join("\t".join(row) for row in rows)}
    members = {"x.en": sides[0], "x.xx": sides[1]} if rng.random() < 0.5 else whole
    with zipfile.ZipFile(path, "w", _METHODS[rng.integers(len(_METHODS))]) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text, archive.compression)
    data = damaged(path.read_bytes(), rng)
    path.write_bytes(data)
    read = list(read_pairs(TextSource((str(path),), ("en", "xx"))))
    if not data.startswith(b"PK\x03\x04"):
        return "no archive any more"
    return "unharmed archive" if read == rows else f"wrong: {len(read)} rows, which are not those of the archive"


def _text(rng: np.random.Generator) -> bytes:
    """Bytes of all sorts, most of them UTF-8."""
    kind, count = rng.random(), int(rng.geometric(0.05))
    if kind < 0.1:
        return rng.bytes(count)
    parts = [_PARTS[rng.integers(len(_PARTS))].encode() for _ in range(count)]
    if kind < 0.2:
        parts = [b"ba ce\tdi fo\n" * int(rng.integers(1, 20))]
    if kind > 0.75:
        parts.insert(int(rng.integers(len(parts) + 1)), _BROKEN[rng.integers(len(_BROKEN))])
    return b"".join(parts)


def _packed(plain: bytes, rng: np.random.Generator) -> tuple[str, bytes, bytes | None]:
    """The ending of a file's name, the file, and the bytes that must be read there, if any are; None for any."""
    kind = rng.random()
    if kind < 0.5:
        return "", plain, plain
    if kind < 0.53:
        return "", _COMPRESSED[rng.integers(len(_COMPRESSED))] + rng.bytes(int(rng.integers(40))), None
    which = int(rng.integers(3))
    ending = (".gz", ".bz2", ".xz")[which]
    packed = (gzip.compress(plain, mtime=0), bz2.compress(plain), lzma.compress(plain))[which]
    data = damaged(packed, rng) if rng.random() < 0.7 else packed
    more = len(data) > len(packed) and data.startswith(packed)  # gzip files may follow one another
    return ending, data, plain if data[:10] == packed[:10] and not more else None


def _lines(data: bytes) -> list[str] | None:
    """The lines of a text by their definition; None if it is not UTF-8."""
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    if lines:
        lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
    try:
        return [line.decode("utf-8").rstrip("\r") for line in lines]
    except UnicodeDecodeError:
        return None
