"""The encoder: averaging models without torch, with a first vector in a fraction of a second."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.embedding_table import TableType, normalize
from st_paragram.core.encoding.embed import BATCH_SIZE, embed, list_of_texts
from st_paragram.core.model_directory import model_files
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    read_configuration,
    save_directory,
)
from st_paragram.core.model_directory.find import SHIPPED, find
from st_paragram.core.model_directory.model_files import SIMILARITIES, AveragingModel
from st_paragram.core.native import usable_threads
from st_paragram.core.quantization import PRECISIONS, Vectors, quantize
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError

# in the order in which sentence-transformers looks for them
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


class Encoder:
    """Turn texts into embeddings with an averaging model, using only NumPy and the compiled
    kernels.

    It gives the same numbers as `st_paragram.load`, which returns a `SentenceTransformer` for
    training, GPUs and other modules. The embedding matrix is memory-mapped, so processes that open
    the same model share it. An encoder is safe to use from several threads and after a fork; it can
    be pickled and copied.

    Example:
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
        """Open a model: a path, `p-sp-mini`, `p-sp-base`, a hub id `owner/name` or
        `owner/name@revision`, or its parts.

        With `truncate_dim`, only the first dimensions are loaded. The default for `num_threads` is
        `OMP_NUM_THREADS`, or the number of cores.
        """
        if num_threads is not None and num_threads < 1:
            raise SettingsError(f"num_threads is {num_threads}; use at least 1")
        model_files.check_dimension(truncate_dim)
        if isinstance(model, AveragingModel):
            self.model = replace(model, table=model.table.truncated(truncate_dim))
        else:
            folder = find(model)
            configuration = read_configuration(folder)
            if configuration.architecture != AVERAGING:
                seen = f"a model of architecture {configuration.architecture!r}, which needs torch"
                again = "an averaging model opens without torch after st_paragram.save"
                raise ModelDirectoryError(
                    f"{folder}: {seen}; open it with st_paragram.load ({again})"
                )
            self.model = model_files.read(folder, configuration.values, truncate_dim)
        self.num_threads = num_threads or usable_threads()
        settings = self.model.settings
        stored = {name: prompt or "" for name, prompt in (settings.get("prompts") or {}).items()}
        # name -> text to put before each text
        self.prompts: dict[str, str] = model_files.PROMPTS | stored
        self.default_prompt_name: str | None = settings.get("default_prompt_name")
        self.similarity_fn_name: str = settings.get("similarity_fn_name") or "cosine"
        self.truncate_dim: int | None = settings.get("truncate_dim")

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self.model.tokenizer

    @property
    def dimension(self) -> int:
        """Dimensions of an embedding, D."""
        return len(range(self.model.table.dimension)[: self.truncate_dim])

    def get_embedding_dimension(self) -> int:
        """Return the dimensions of an embedding, D, under sentence-transformers' name."""
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
    ) -> NDArray[Any]:
        """Embed texts, as float32 (N, D), or (D,) for a single string; see `packing.quantize` for
        other precisions.

        Args:
            texts: A string, a list, an array, a column of pandas, polars or Arrow, or any iterable
                of strings.
            batch_size: Number of texts embedded at a time.
            prompt: Text to put before each text.
            prompt_name: Name of a prompt in `prompts`; without `prompt` and `prompt_name`, the
                default prompt is used.
            normalize_embeddings: Scale embeddings to length 1.
            truncate_dim: Number of first dimensions to keep; None: all.
            precision: float32, int8, uint8, binary or ubinary.
            language: Language of the texts, for a model with two vocabularies.
            show_progress_bar: Show a progress bar.
        """
        if precision not in PRECISIONS:
            raise SettingsError(f"unknown precision {precision!r}; choose {', '.join(PRECISIONS)}")
        if type(batch_size) is not int or batch_size < 1:
            raise SettingsError(f"batch_size is {batch_size!r}; give a whole number of at least 1")
        model_files.check_dimension(truncate_dim)
        single = isinstance(texts, str)
        rows = embed(
            [texts] if single else list_of_texts(texts),
            self._tokenizer(language),
            self.model.table,
            self.model.unit_vectors,
            normalize_embeddings,
            self.truncate_dim if truncate_dim is None else truncate_dim,
            self._prompt(prompt, prompt_name),
            batch_size,
            self.num_threads,
            bool(show_progress_bar),
        )
        result = quantize(rows, precision)
        return result[0] if single else result

    def encode_query(self, texts: Any, **options: Any) -> NDArray[Any]:
        """Embed questions: `encode` with the prompt "query", unless another prompt is given."""
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt_name"] = "query"
        return self.encode(texts, **options)

    def encode_document(self, texts: Any, **options: Any) -> NDArray[Any]:
        """Embed documents: `encode` with the first existing prompt of "document", "passage" and
        "corpus".
        """
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt_name"] = next(
                name for name in _DOCUMENT_PROMPTS if name in self.prompts
            )
        return self.encode(texts, **options)

    def similarity(self, a: Any, b: Any) -> Vectors:
        """Compute the model's similarity, usually the cosine, of all rows of `a`, (n, D), and `b`,
        (m, D): (n, m).

        `similarity_fn_name` may also be dot, euclidean or manhattan; the last two are negated
        distances.
        """
        if self.similarity_fn_name not in SIMILARITIES:
            raise SettingsError(
                f"unknown similarity {self.similarity_fn_name!r}; choose {', '.join(SIMILARITIES)}"
            )
        a, b = (np.atleast_2d(np.asarray(each, dtype=np.float32)) for each in (a, b))
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
            raise SettingsError(
                f"vectors have shapes {a.shape} and {b.shape}; give rows of equal dimension"
            )
        if self.similarity_fn_name == "manhattan":
            return np.array([-np.abs(b - row).sum(axis=1) for row in a], np.float32).reshape(
                len(a), len(b)
            )
        if self.similarity_fn_name == "cosine":
            a, b = normalize(a.copy()), normalize(b.copy())
        products: Vectors = a @ b.T
        if self.similarity_fn_name != "euclidean":
            return products
        squares = np.einsum("nd,nd->n", a, a)[:, None] + np.einsum("md,md->m", b, b)
        return -np.sqrt(np.maximum(squares - 2 * products, 0))

    def tokenize(self, texts: Any) -> list[list[str]]:
        """Split each text into the pieces that have an embedding; a single string counts as one
        text.
        """
        rows = [texts] if isinstance(texts, str) else list_of_texts(texts)
        ids, offsets = self.tokenizer.encode(rows, None, self.num_threads)
        pieces = [self.tokenizer.piece(each) for each in ids.tolist()]
        spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        return [[piece for piece in pieces[begin:end] if piece] for begin, end in spans]

    def in_language(self, language: str) -> Encoder:
        """Return the encoder for one language of a model with two vocabularies; it shares the
        embedding matrix.
        """
        encoder = copy(self)
        encoder.model = replace(self.model, tokenizer=self._tokenizer(language))
        encoder.prompts = dict(self.prompts)
        return encoder

    def save(
        self,
        path: str | Path,
        card: str = "",
        overwrite: bool = False,
        dtype: TableType | str | None = None,
        truncate_dim: int | None = None,
        normalize: bool = False,
        training: str | None = None,
    ) -> Path:
        """Write a model directory, all of it or nothing; sentence-transformers also opens it if the
        tokenizer allows.

        The first `truncate_dim` dimensions are stored as `dtype`: float32, float16, int8 or int4.
        With `normalize`, every library gives embeddings of length 1. `card` and `training` become
        `README.md` and `training.json`.
        """
        settings = {name: getattr(self, name) for name in model_files.PIPELINE_SETTINGS}
        model = replace(
            self.model, settings=settings, unit_vectors=self.model.unit_vectors or normalize
        )
        write = partial(model_files.write, model, dtype=dtype, dim=truncate_dim)
        return save_directory(path, write, card, training, overwrite)

    def __repr__(self) -> str:
        table = self.model.table
        return (
            f"Encoder({len(table):,} {self.tokenizer.kind} ids, {table.dimension} dimensions,"
            f" {table.kind.value})"
        )

    def _tokenizer(self, language: str | None) -> Tokenizer:
        tokenizer = self.model.tokenizer
        if language is None:
            return tokenizer
        if not isinstance(tokenizer, BilingualTokenizer):
            raise SettingsError(
                f"language is {language!r}, but the model has one vocabulary; leave the"
                " language out"
            )
        return tokenizer.in_language(language)

    def _prompt(self, prompt: str | None, name: str | None) -> str | None:
        if prompt is not None and name is not None:
            raise SettingsError("prompt and prompt_name are both given; give only one")
        name = self.default_prompt_name if name is None else name
        if prompt is not None or name is None:
            return prompt
        if name not in self.prompts:
            raise SettingsError(f"no prompt {name!r}; this model has {', '.join(self.prompts)}")
        return self.prompts[name]
