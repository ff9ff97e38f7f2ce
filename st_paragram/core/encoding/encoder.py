"""The encoder: averaging models without torch."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Vectors
from st_paragram.core.embedding_table import TableType, normalize
from st_paragram.core.encoding.embed import BATCH_SIZE, embed, list_of_texts
from st_paragram.core.model_directory import model_files
from st_paragram.core.model_directory.card import new_card
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    read_configuration,
    save_directory,
)
from st_paragram.core.model_directory.find import SHIPPED, find
from st_paragram.core.model_directory.model_files import SIMILARITIES, AveragingModel
from st_paragram.core.native import usable_threads
from st_paragram.core.quantization import PRECISIONS, quantize
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError

# in the order in which sentence-transformers looks for them
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


class Encoder:
    """Turn texts into embeddings with an averaging model, using only NumPy and compiled kernels.

    It gives the same numbers as `st_paragram.load`, which returns a `SentenceTransformer` for
    training, GPUs and other modules. The embedding matrix is memory-mapped, so processes that open
    the same model share it. An encoder is safe to use from several threads and after a fork; it can
    be pickled and copied.

    Examples:
        >>> from st_paragram import Encoder
        >>> encoder = Encoder("p-sp-mini")
        >>> vectors = encoder.encode(["Where is the station?", "¿Dónde está la estación?"])
        >>> round(float(encoder.similarity(vectors[0], vectors[1])[0, 0]), 2)
        0.94
    """

    def __init__(
        self,
        model: str | Path | AveragingModel = SHIPPED,
        truncate_dim: int | None = None,
        num_threads: int | None = None,
    ) -> None:
        """Open a model.

        Args:
            model: Path, `p-sp-mini`, `p-sp-base`, `p-sp-large`, `p-sp-es` (or another language of
                p-sp-large), a hub id `owner/name` or `owner/name@revision`, or the parts of a
                model.
            truncate_dim: Number of first dimensions to load; None: all.
            num_threads: Number of threads; None: `OMP_NUM_THREADS`, or the number of cores.
        """
        if num_threads is not None and num_threads < 1:
            raise SettingsError(f"num_threads is {num_threads}; use at least 1")
        model_files.check_dimension(truncate_dim)
        if isinstance(model, AveragingModel):
            table = model.table.truncated(truncate_dim)
            self.model: AveragingModel = replace(model, table=table)
        else:
            self.model = _read(find(model), truncate_dim)
        self.num_threads: int = num_threads or usable_threads()
        settings = self.model.settings
        # name -> text to put before each text
        self.prompts: dict[str, str] = dict(model_files.PROMPTS)
        for name, text in (settings.get("prompts") or {}).items():
            self.prompts[name] = text or ""
        self.default_prompt_name: str | None = settings.get("default_prompt_name")
        self.similarity_fn_name: str = settings.get("similarity_fn_name") or "cosine"
        self.truncate_dim: int | None = settings.get("truncate_dim")

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self.model.tokenizer

    @property
    def dimension(self) -> int:
        """Dimension D of the embeddings."""
        return len(range(self.model.table.dimension)[: self.truncate_dim])

    def get_embedding_dimension(self) -> int:
        """Return the dimension of the embeddings, under sentence-transformers' name."""
        return self.dimension

    def encode(
        self,
        texts: Any,
        batch_size: int = BATCH_SIZE,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        precision: str = "float32",
        language: str | None = None,
        show_progress_bar: bool | None = False,
        convert_to_tensor: bool = False,
    ) -> NDArray[Any]:
        """Embed texts, as float32 (N, D), or (D,) for a single string.

        Args:
            texts: A string, a list, an array, a column of pandas, polars or Arrow, or any iterable
                of strings.
            batch_size: Number of texts embedded at a time.
            prompt: Text to put before each text.
            prompt_name: Name of a prompt in `prompts`; without `prompt` and `prompt_name`, the
                default prompt is used.
            normalize_embeddings: Scale embeddings to length 1.
            truncate_dim: Number of first dimensions to keep; None: all.
            precision: float32, int8, uint8, binary or ubinary, see `quantization.quantize`.
            language: Language of the texts, for a model with two vocabularies.
            show_progress_bar: Show a progress bar.
            convert_to_tensor: Only False: `st_paragram.load` returns models that give tensors.
        """
        if convert_to_tensor:
            raise SettingsError(
                "an Encoder gives numpy arrays; for tensors, open the model with st_paragram.load"
            )
        if precision not in PRECISIONS:
            raise SettingsError(f"unknown precision {precision!r}; choose {', '.join(PRECISIONS)}")
        if type(batch_size) is not int or batch_size < 1:
            raise SettingsError(f"batch_size is {batch_size!r}; give a whole number of at least 1")
        model_files.check_dimension(truncate_dim)
        is_single = isinstance(texts, str)
        rows = embed(
            [texts] if is_single else list_of_texts(texts),
            self._tokenizer(language),
            self.model.table,
            unit_vectors=self.model.unit_vectors,
            normalized=normalize_embeddings,
            truncate_dim=self.truncate_dim if truncate_dim is None else truncate_dim,
            prompt=self._prompt(prompt, prompt_name),
            batch_size=batch_size,
            threads=self.num_threads,
            progress=bool(show_progress_bar),
        )
        result = quantize(rows, precision)
        return result[0] if is_single else result

    def encode_query(self, texts: Any, **options: Any) -> NDArray[Any]:
        """Embed questions: `encode` with the prompt "query", unless another prompt is given."""
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt_name"] = "query"
        return self.encode(texts, **options)

    def encode_document(self, texts: Any, **options: Any) -> NDArray[Any]:
        """Embed documents: `encode` with the first of the prompts document, passage and corpus."""
        if options.get("prompt") is None and options.get("prompt_name") is None:
            names = [name for name in _DOCUMENT_PROMPTS if name in self.prompts]
            options["prompt_name"] = names[0]
        return self.encode(texts, **options)

    def similarity(self, a: Any, b: Any) -> Vectors:
        """Compute the model's similarity, usually the cosine, of all rows of `a` and `b`.

        The rows are (n, D) and (m, D), and the result is (n, m). `similarity_fn_name` may also be
        dot, euclidean or manhattan; the last two are negated distances.
        """
        name, a, b = self._compared(a, b)
        if name == "manhattan":
            distances = np.empty((len(a), len(b)), np.float32)
            for number, row in enumerate(a):
                distances[number] = np.abs(b - row).sum(axis=1)
            return -distances
        if name == "cosine":
            a = normalize(a.copy())
            b = normalize(b.copy())
        products: Vectors = a @ b.T
        if name != "euclidean":
            return products
        squares = np.einsum("nd,nd->n", a, a)[:, None] + np.einsum("md,md->m", b, b)
        return -np.sqrt(np.maximum(squares - 2 * products, 0))

    def similarity_pairwise(self, a: Any, b: Any) -> Vectors:
        """Compute the model's similarity of each row of `a` and the same row of `b`.

        The rows are (n, D) and (n, D), and the result is (n,). With the cosine, it scores pairs of
        sentences as in figure 1 of P-SP (EMNLP 2022).

        Raises:
            SettingsError: `a` and `b` have different numbers of rows or dimensions.
        """
        name, a, b = self._compared(a, b)
        if len(a) != len(b):
            raise SettingsError(f"{len(a):,} and {len(b):,} vectors; give pairs, as many of both")
        if name == "manhattan":
            return -np.abs(a - b).sum(axis=1)
        if name == "euclidean":
            return -np.linalg.norm(a - b, axis=1)
        if name == "cosine":
            a = normalize(a.copy())
            b = normalize(b.copy())
        return np.einsum("nd,nd->n", a, b)

    def tokenize(self, texts: Any) -> list[list[str]]:
        """Split each text into the tokens that have an embedding; a string counts as one text."""
        rows = [texts] if isinstance(texts, str) else list_of_texts(texts)
        ids, offsets = self.tokenizer.encode(rows, None, self.num_threads)
        pieces = [self.tokenizer.piece(number) for number in ids.tolist()]
        rows_of_pieces = []
        for begin, end in pairwise(offsets.tolist()):
            rows_of_pieces.append([piece for piece in pieces[begin:end] if piece])
        return rows_of_pieces

    def in_language(self, language: str) -> Encoder:
        """Return the encoder for one language of a model with two vocabularies.

        It shares the embedding matrix.
        """
        encoder = copy(self)
        encoder.model = replace(self.model, tokenizer=self._tokenizer(language))
        encoder.prompts = dict(self.prompts)
        return encoder

    def save(
        self,
        path: str | Path,
        card: str | None = None,
        overwrite: bool = False,
        dtype: TableType | str | None = None,
        truncate_dim: int | None = None,
        normalize: bool = False,
        training: str | None = None,
    ) -> Path:
        """Write a model directory, all of it or nothing.

        Plain sentence-transformers also opens it if the tokenizer allows.

        Args:
            path: Folder to write.
            card: Text of the model card, `README.md`; None: how to load the model, and that it has
                no license yet.
            overwrite: Replace an existing model directory.
            dtype: Number type of the table: float32, float16, int8 or int4; None: unchanged.
            truncate_dim: Number of first dimensions to store; None: all.
            normalize: Every library gives embeddings of length 1.
            training: Record of the training run, `training.json`.
        """
        settings = {name: getattr(self, name) for name in model_files.PIPELINE_SETTINGS}
        unit_vectors = self.model.unit_vectors or normalize
        model = replace(self.model, settings=settings, unit_vectors=unit_vectors)
        write = partial(model_files.write, model, dtype=dtype, dim=truncate_dim)
        text: str | Callable[[Path], str] | None = card
        if text is None:
            dimension = truncate_dim or self.dimension
            text = partial(new_card, Path(path).resolve().name, dimension)
        return save_directory(path, write, text, training, overwrite)

    def __repr__(self) -> str:
        table = self.model.table
        return (
            f"Encoder({len(table):,} {self.tokenizer.kind} ids, {table.dimension} dimensions,"
            f" {table.kind.value})"
        )

    def _compared(self, a: Any, b: Any) -> tuple[str, Vectors, Vectors]:
        """Return the name of the similarity, and two sets of vectors as rows of one dimension."""
        name = self.similarity_fn_name
        if name not in SIMILARITIES:
            raise SettingsError(f"unknown similarity {name!r}; choose {', '.join(SIMILARITIES)}")
        a = np.atleast_2d(np.asarray(a, dtype=np.float32))
        b = np.atleast_2d(np.asarray(b, dtype=np.float32))
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
            raise SettingsError(
                f"vectors have shapes {a.shape} and {b.shape}; give rows of equal dimension"
            )
        return name, a, b

    def _tokenizer(self, language: str | None) -> Tokenizer:
        if language is None:
            return self.tokenizer
        return self.tokenizer.in_language(language)

    def _prompt(self, prompt: str | None, name: str | None) -> str | None:
        """Return the prompt, or the prompt of this name, or the default prompt."""
        if prompt is not None and name is not None:
            raise SettingsError("prompt and prompt_name are both given; give only one")
        if name is None:
            name = self.default_prompt_name
        if prompt is not None or name is None:
            return prompt
        if name not in self.prompts:
            raise SettingsError(f"no prompt {name!r}; this model has {', '.join(self.prompts)}")
        return self.prompts[name]


def _read(folder: Path, truncate_dim: int | None) -> AveragingModel:
    """Read an averaging model; refuse others."""
    configuration = read_configuration(folder)
    if configuration.architecture != AVERAGING:
        raise ModelDirectoryError(
            f"{folder}: a model of architecture {configuration.architecture!r}, which needs torch;"
            " open it with st_paragram.load (an averaging model opens without torch after"
            " st_paragram.save)"
        )
    return model_files.read(folder, configuration.values, truncate_dim)
