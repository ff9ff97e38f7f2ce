"""`README.md` of an exported folder: how to read it, and the card of the original model."""

from __future__ import annotations

from pathlib import Path

_OPENINGS = {
    "onnx": """\
`model.onnx` takes `input_ids` and `attention_mask`, int64 (batch, tokens), and gives `sentence_embedding`, float32
(batch, {dimension}). The ids are those of `sentencepiece.model` for a text in small letters, or of `tokenizer.json`,
without special tokens. `reader.py` does both (`pip install numpy sentencepiece onnxruntime`; tokenizers for words):

```python
from reader import Encoder

vectors = Encoder("{name}").encode(["Where is the station?"])
```
""",
    "numpy": """\
`embeddings.npy` has a row for each id of `sentencepiece.model`, or of `tokenizer.json`, and a vector is the mean of the
rows of a text's ids. `reader.py` shows all of it (`pip install numpy sentencepiece`; tokenizers for models of words):

```python
from reader import Encoder

vectors = Encoder("{name}").encode(["Where is the station?"])
```
""",
    "model2vec": """\
The folder opens in model2vec (`pip install model2vec`), and in sentence-transformers:

```python
from model2vec import StaticModel

vectors = StaticModel.from_pretrained("{name}").encode(["Where is the station?"])
```
""",
}
_CARD = """\
{metadata}# {name}

`{model}`, exported for {kind} by `st-paragram export`: {dimension} components, table of {table_type}, {length}.

{opening}
What follows is the card of `{model}`. Its licence holds for this folder, too; what it says of files and of how to load
them holds for the original.

{card}"""


def export_card(kind: str, folder: Path, name: str, dimension: int, table_type: str, normalize: bool) -> str:
    """The text of the card.

    Args:
        kind: the format.
        folder: of the model, whose own card is kept.
        name: of the exported folder.
        dimension: components of a vector.
        table_type: type of the table.
        normalize: whether vectors have length 1.
    """
    metadata, card = _parts(folder / "README.md")
    opening = _OPENINGS[kind].format(name=name, dimension=dimension)
    length = "vectors of length 1" if normalize else "vectors not normalized (compare them by cosine)"
    return _CARD.format(
        metadata=metadata,
        name=name,
        model=folder.resolve().name,
        kind=kind,
        dimension=dimension,
        table_type=table_type,
        length=length,
        opening=opening,
        card=card,
    )


def _parts(path: Path) -> tuple[str, str]:
    """Metadata on top of a card, which must stay there, and the rest."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    head, end, rest = text.partition("\n---\n")
    if text.startswith("---\n") and end:
        return f"{head}{end}\n", rest.lstrip("\n")
    return "", text
