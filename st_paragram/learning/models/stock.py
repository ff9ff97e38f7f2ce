"""The files of any pipeline of sentence-transformers' own modules: its own `save_pretrained`, and `st_paragram.json`.

`SentenceTransformer(path)` and `st_paragram.load(path)` give the same pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.directory import STOCK, Configuration, damaged, write_configuration
from st_paragram.core.encoding.model_files import read_pipeline_settings
from st_paragram.core.encoding.table import TableType
from st_paragram.errors import ModelDirectoryError, SettingsError, one_line
from st_paragram.learning.models.modules_file import read_modules
from st_paragram.learning.models.stock_sizes import check_sizes
from st_paragram.learning.modules.compact_embedding import is_finite
from st_paragram.learning.modules.transformer_encoder import no_progress_bars

PACKAGES = ("sentence_transformers.",)
_PANIC = "PanicException"  # of Rust; no `Exception`, and in no module that could be imported


def holds(model: SentenceTransformer) -> bool:
    """Whether all modules are sentence-transformers'."""
    return all(type(module).__module__.startswith(PACKAGES) for module in model)


def check(model: SentenceTransformer) -> None:
    """Nothing of sentence-transformers' own modules is refused."""


def write(
    model: SentenceTransformer,
    folder: Path,
    dtype: TableType | str | None = None,
    truncate_dim: int | None = None,
    architecture: str = STOCK,
) -> None:
    """Write the pipeline as its own `save_pretrained` does, without a model card, and `st_paragram.json`.

    Raises:
        SettingsError: another type or fewer components are asked for, which only a table of embeddings can have.
    """
    if dtype is not None or truncate_dim is not None:
        raise SettingsError(
            "only averaging models can be stored in another type or with fewer components; leave dtype and "
            "truncate_dim out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with no_progress_bars():
        _forget_last_batch(model)
        model.save_pretrained(str(folder), create_model_card=False)
    write_configuration(folder, Configuration(architecture, {}))


def _forget_last_batch(model: SentenceTransformer) -> None:
    """Have tokenizers save no truncation or padding, which they keep from the last call and set again at the next."""
    for module in model:
        backend = getattr(getattr(module, "tokenizer", None), "backend_tokenizer", None)
        if backend is not None:
            backend.no_truncation()
            backend.no_padding()


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> SentenceTransformer:
    """Read what `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: sentence-transformers cannot read it.
    """
    if values:
        raise damaged(folder, f"{one_line(next(iter(values)), 80)} is unknown")
    read_pipeline_settings(folder)
    with reading(folder, "sentence-transformers cannot read it"), no_progress_bars():
        for module in read_modules(folder, PACKAGES):
            check_sizes(folder, module)
        model = SentenceTransformer(
            str(folder), device=device, truncate_dim=truncate_dim, trust_remote_code=False, local_files_only=True
        )
        check_finite(model)
    return model


def read_directory(folder: Path) -> SentenceTransformer:
    """Read a directory of sentence-transformers that is none of ours; its own code is not run, and nothing is fetched.

    Raises:
        ModelDirectoryError: sentence-transformers cannot read it.
    """
    with reading(folder, "sentence-transformers cannot load it"):
        return SentenceTransformer(str(folder), trust_remote_code=False, local_files_only=True)


@contextmanager
def reading(folder: Path, failure: str) -> Iterator[None]:
    """Turn what reading modules raises into one error.

    Raises:
        ModelDirectoryError: with the folder, the failure in words, and the reason.
    """
    try:
        yield
    except ModelDirectoryError:
        raise
    except BaseException as error:  # modules raise what their parts raise, and the tokenizers library panics
        if not (isinstance(error, Exception) or type(error).__name__ == _PANIC):
            raise
        raise ModelDirectoryError(f"{folder}: {failure} ({one_line(error)}); save it again") from error


def check_finite(model: SentenceTransformer) -> None:
    """Refuse weights with which no embedding would be a number.

    Raises:
        ValueError: parameters are NaN or infinite.
    """
    for name, parameter in model.named_parameters():
        if not is_finite(parameter.detach()):
            raise ValueError(f"{name} is NaN or infinite in places")


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights from a folder that `write` made.

    Raises:
        ModelDirectoryError: sentence-transformers cannot read it, or it holds another pipeline.
    """
    fill(into, read(folder, {}, "cpu", None), folder)


def fill(into: SentenceTransformer, stored: SentenceTransformer, folder: Path) -> None:
    """Copy the weights of the pipeline that a folder holds.

    Raises:
        ModelDirectoryError: it is another pipeline.
    """
    try:
        into.load_state_dict(stored.state_dict())
    except RuntimeError as error:
        raise ModelDirectoryError(f"{folder}: the weights of another pipeline than the one to fill") from error
