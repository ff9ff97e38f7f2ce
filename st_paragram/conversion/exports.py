"""Averaging models for software without st_paragram: a folder with the model, a reader, and its card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from st_paragram.conversion.exported_model import ExportedModel, exported_model, write_numpy
from st_paragram.conversion.model2vec_export import write_model2vec
from st_paragram.conversion.onnx_export import write_onnx
from st_paragram.core.encoding.directory import AVERAGING, fingerprint, read_configuration
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.model_files import check_components, stored_table
from st_paragram.core.encoding.table import TableType
from st_paragram.core.files import atomic_folder, check_output_folder, output_lock, write_json, write_text
from st_paragram.core.version import installed_version
from st_paragram.errors import ModelDirectoryError, SettingsError

#: The file that every exported folder has.
EXPORT_FILE = "st_paragram_export.json"

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


@dataclass(frozen=True)
class ExportFormat:
    """A kind of exported folder.

    Args:
        write: the model's files into an empty folder.
        reader: the module of `conversion` that goes along as `reader.py`; None where a package is the reader.
    """

    write: Callable[[ExportedModel, Path], None]
    reader: str | None


FORMATS = {
    "onnx": ExportFormat(write_onnx, "onnx_reader.py"),
    "numpy": ExportFormat(write_numpy, "numpy_reader.py"),
    "model2vec": ExportFormat(write_model2vec, None),
}


@dataclass(frozen=True)
class ExportSettings:
    """What an export changes.

    Args:
        dtype: type of the table, float32, float16 or int8; as it is if None, and int8 for int4, with the same numbers.
        truncate_dim: keep the first components only; all if None.
        normalize: scale vectors to length 1; as the model does if False.
        overwrite: replace a folder that an export made.

    Example:
        >>> from st_paragram import ExportSettings, export_model
        >>> export_model("p-sp-mini", "small", "model2vec", ExportSettings(truncate_dim=64)).name
        'small'
    """

    dtype: TableType | str | None = None
    truncate_dim: int | None = None
    normalize: bool = False
    overwrite: bool = False


def export_model(name: str | Path, output: str | Path, kind: str, settings: ExportSettings | None = None) -> Path:
    """Write an averaging model for other software, the whole folder or nothing.

    Args:
        name: of the model, as of `Encoder`.
        output: output folder.
        kind: a name in `FORMATS`.
        settings: what to change.

    Returns:
        The folder.

    Raises:
        ModelDirectoryError: no such model, one that is not averaging or that the format cannot hold, or the output is
            refused.
        SettingsError: a wrong type or number of components.
        MissingExtraError: the format needs a package that is not installed.

    Example:
        >>> from st_paragram import export_model
        >>> export_model("p-sp-mini", "p-sp-numpy", "numpy").name
        'p-sp-numpy'
    """
    settings, output, folder = settings or ExportSettings(), Path(output), find(name)
    check = partial(check_export, output, settings.overwrite)
    check()
    model = _read(folder, kind, settings)
    with output_lock(output, check), atomic_folder(output) as new:
        new.mkdir()
        FORMATS[kind].write(model, new)
        write_json(new / EXPORT_FILE, _description(model, kind, folder), indent=2)
        if reader := FORMATS[kind].reader:
            write_text(new / "reader.py", (Path(__file__).parent / reader).read_text(encoding="utf-8"))
        write_text(new / "README.md", _card(model, kind, folder, output.name))
    return output


def check_export(output: str | Path, overwrite: bool = False) -> None:
    """Refuse early an output that `export_model` would refuse.

    Raises:
        ModelDirectoryError: it exists and is not an export, or must not be overwritten; or it cannot be made.
    """
    check_output_folder(Path(output), overwrite, EXPORT_FILE, "model export of st_paragram", ModelDirectoryError)


def _read(folder: Path, kind: str, settings: ExportSettings) -> ExportedModel:
    architecture = read_configuration(folder).architecture
    if architecture != AVERAGING:
        seen = f"a model of architecture {architecture!r}"
        raise ModelDirectoryError(f"{folder}: {seen}; only averaging models can be exported to {kind}")
    model = Encoder(folder).model
    check_components(settings.truncate_dim, model.table.dimension)
    if settings.dtype == TableType.INT4:
        raise SettingsError(f"{kind} readers do not support 4-bit tables; choose int8, which can hold an int4 model")
    own = TableType.INT8 if model.table.kind is TableType.INT4 else None
    table = stored_table(model.table, settings.dtype or own, settings.truncate_dim)
    model = replace(model, table=table, unit_vectors=model.unit_vectors or settings.normalize)
    return exported_model(model, folder)


def _description(model: ExportedModel, kind: str, folder: Path) -> dict[str, Any]:
    """What `numpy_reader` must know, and where an export comes from."""
    return {
        "format": kind,
        "model": folder.resolve().name,
        "fingerprint": fingerprint(folder),
        "st_paragram": installed_version(),
        "dimension": model.dimension,
        "vocabulary_size": len(model.table),
        "table_type": model.table.dtype.name,
        "normalize": model.normalize,
        "unknown_id": model.unknown_id,
        "dropped_ids": model.dropped_ids,
        "lower_case": model.lower_case,
    }


def _card(model: ExportedModel, kind: str, folder: Path, name: str) -> str:
    """How to read an exported folder, and the card of the original model, whose metadata stay on top."""
    there = folder / "README.md"
    text = there.read_text(encoding="utf-8", errors="replace") if there.is_file() else ""
    metadata, card = "", text
    if text.startswith("---\n") and "\n---\n" in text:
        head, end, rest = text.partition("\n---\n")
        metadata, card = f"{head}{end}\n", rest.lstrip("\n")
    return _CARD.format(
        metadata=metadata,
        name=name,
        model=folder.resolve().name,
        kind=kind,
        dimension=model.dimension,
        table_type=model.table.dtype.name,
        length="vectors of length 1" if model.normalize else "vectors not normalized (compare them by cosine)",
        opening=_OPENINGS[kind].format(name=name, dimension=model.dimension),
        card=card,
    )
