"""The model of a server, which embeds the texts of requests."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unicodedata import category

import numpy as np
from starlette.exceptions import HTTPException

from st_paragram.core.arrays import Integers
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import batch_size, load_encoder
from st_paragram.core.encoding.unit_embeddings import known_embeddings, scaled, tokenizer_of
from st_paragram.core.model_directory.find import find
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import short
from st_paragram.tools.serving.batching import Batcher, Encoded, Way
from st_paragram.tools.serving.schemas import Job, Options

MAX_TOKENIZED = 200_000  # characters per request: their tokens take many times as many bytes
_SHORT = 4096  # characters that an averaging model embeds in about half a millisecond
# kind of texts, or name of a prompt -> method; `encode` for others
_METHODS = {"query": "encode_query", "document": "encode_document"}


class ServedModel:
    """A model, and the limits of the texts that it embeds.

    Attributes:
        folder: Directory of the model.
        name: Name of the model in requests.
        encoder: The model.
        dimension: Dimension of its embeddings.
        batcher: Embeds the texts of all requests together.
    """

    def __init__(self, job: Job) -> None:
        """Load the model."""
        self.folder = find(job.model)
        self.name = job.name or job.model.partition("@")[0].rstrip("/").rpartition("/")[2]
        self.encoder: Any = load_encoder(self.folder)
        self.dimension: int = self.encoder.get_embedding_dimension() or 0
        self._job = job
        self._batch_size = batch_size(self.encoder)
        self._counting = self.encoder  # the same model, which counts tokens in `_tokenizer`
        self._tokenizer: Any = None
        short = 0
        if isinstance(self.encoder, Encoder):
            self._tokenizer = _CountingTokenizer(self.encoder.tokenizer)
            model = replace(self.encoder.model, tokenizer=self._tokenizer)
            self._counting = Encoder(model, None, self.encoder.num_threads)
            short = _SHORT
        self.batcher = Batcher(self._encode, short)

    def check_name(self, name: str | None) -> None:
        """Refuse another model than this."""
        if name not in (None, self.name):
            raise HTTPException(404, f"this server has only the model {self.name}")

    def check_dimensions(self, dimensions: int | None) -> None:
        """Refuse more dimensions than the model has."""
        if dimensions is not None and dimensions > self.dimension:
            raise HTTPException(
                400, f"dimensions is {dimensions}; {self.name} has {self.dimension} dimensions"
            )

    async def embed(
        self,
        texts: list[str],
        field: str,
        options: Options | None = None,
        *,
        kind: str = "sentence",
    ) -> Encoded:
        """Embed the texts of a field of a request.

        Args:
            texts: The texts.
            field: Name of the field, for messages.
            options: Truncation and prompt. The prompts query and document also select a tower.
            kind: Kind of the texts, for models with towers.

        Raises:
            HTTPException: There are too many texts, or a text is empty or too long, or has no
                token that the model knows. Or the model has no prompt of this name.
        """
        options = options or Options()
        prompt_name = options.prompt_name
        self._prompt(prompt_name)
        if prompt_name in _METHODS:
            kind = prompt_name
        texts = self._checked(texts, field, options.truncate)
        encoded = await self.batcher(texts, (kind, prompt_name))
        if not encoded.known.all():
            number = int(np.argmin(encoded.known))
            # spaces and invisible characters
            is_empty = all(category(character)[0] in "CZ" for character in texts[number])
            reason = "is empty" if is_empty else f"has no token that {self.name} knows"
            raise HTTPException(400, f"{place_of(number, field)} {reason}")
        return encoded

    def tokens(self, texts: list[str], prompt_name: str | None) -> list[list[dict[str, Any]]]:
        """Return the tokens of each text, in the form of text-embeddings-inference."""
        prompt = self._prompt(prompt_name)
        texts = [prompt + text for text in self._checked(texts, "inputs", truncate=False)]
        characters = sum(map(len, texts))
        if characters > MAX_TOKENIZED:
            raise HTTPException(
                400, f"inputs has {characters} characters; at most {MAX_TOKENIZED} are allowed"
            )
        tokenizer = tokenizer_of(self.encoder)
        if not isinstance(tokenizer, Tokenizer):
            raise HTTPException(400, f"the tokens of {self.name} cannot be read; use a P-SP model")
        ids, offsets = tokenizer.encode(texts)
        tokens = []
        for number in ids.tolist():
            piece = tokenizer.piece(number)
            tokens.append(
                {
                    "id": number,
                    "text": piece or "",
                    "special": piece is None,
                    "start": None,
                    "stop": None,
                }
            )
        return [tokens[begin:end] for begin, end in pairwise(offsets.tolist())]

    def _prompt(self, name: str | None) -> str:
        """Return the text of a prompt; refuse a prompt that the model does not have."""
        prompts = self.encoder.prompts
        if name is None:
            return ""
        if name not in prompts:
            names = ", ".join(prompts)
            raise HTTPException(400, f"prompt_name is {short(name)}; {self.name} has {names}")
        return str(prompts[name])

    def _checked(self, texts: list[str], field: str, truncate: bool | None) -> list[str]:
        """Return the texts of a field, cut if they may be; refuse unusable texts."""
        if not 1 <= len(texts) <= self._job.max_texts:
            limit = self._job.max_texts
            raise HTTPException(400, f"{field} has {len(texts):,} texts; give 1 to {limit:,}")
        limit = self._job.max_characters
        if truncate or (truncate is None and self._job.truncate):
            texts = [text[:limit] for text in texts]
        for number, text in enumerate(texts):
            if not text.strip():
                raise HTTPException(400, f"{place_of(number, field)} is empty")
            if len(text) > limit:
                place = place_of(number, field)
                raise HTTPException(
                    400, f"{place} has {len(text):,} characters; at most {limit:,} are allowed"
                )
        return texts

    def _encode(self, texts: list[str], way: Way) -> Encoded:
        kind, prompt_name = way
        method = _METHODS.get(kind, "encode")
        encode = getattr(self._counting, method)
        if self._tokenizer is not None:
            self._tokenizer.begin()
        embeddings = encode(
            texts, batch_size=self._batch_size, prompt_name=prompt_name, show_progress_bar=False
        )
        rows = np.asarray(embeddings, np.float32)
        tokens = self._token_counts([self._prompt(prompt_name) + text for text in texts])
        known = known_embeddings(self.encoder, texts, rows, method=method, prompt_name=prompt_name)
        return Encoded(rows, scaled(rows, known).vectors, known, tokens)

    def _token_counts(self, texts: list[str]) -> Integers:
        """Return the numbers of tokens of texts that were just embedded, (n,)."""
        if self._tokenizer is not None:
            counts: Integers = self._tokenizer.counts()
            return counts
        # takes little time compared with a network
        features = self.encoder.preprocess(texts)
        mask = features.get("attention_mask")
        return np.asarray(features["cu_seq_lens_q"].diff() if mask is None else mask.sum(1))


class _CountingTokenizer(threading.local):
    """A tokenizer that counts the tokens of each text, so that no text is tokenized twice.

    Each thread has separate counts.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._encode = tokenizer.encode_rows
        self._counts = list[Integers]()

    def encode_rows(self, texts: list[str], max_length: int | None, threads: int) -> Any:
        ids, offsets = self._encode(texts, max_length, threads)
        self._counts.append(np.diff(offsets))
        return ids, offsets

    def begin(self) -> None:
        """Forget earlier texts, such as those of a request that failed."""
        self._counts = []

    def counts(self) -> Integers:
        """Return the numbers of tokens of the n texts since `begin`, (n,)."""
        return np.concatenate(self._counts)


def place_of(number: int, field: str) -> str:
    """Name a text of a field; the texts of pairs follow one another."""
    if field == "pairs":
        return f"text {number % 2} of pairs[{number // 2}]"
    return f"text {number} of {field}"
