"""The settings of a server, and the bodies of requests."""

from __future__ import annotations

import os
import tempfile
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field
from pydantic_core import PydanticUseDefault

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError

#: OpenAI's vocabulary, whose token ids LangChain sends instead of texts.
VOCABULARY = "cl100k_base"
CACHED_AS = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"  # its name in tiktoken's cache
_NO_INDEX = ("index", None)


@settings
class Job:
    """The settings of a server: what it serves, and the limits of requests."""

    model: str
    origins: tuple[str, ...] = ()
    key: str | None = field(default=None, repr=False)
    host: str = setting(
        "127.0.0.1",
        "address to listen on; by default only this machine can connect",
        metavar="HOST",
    )
    port: int = setting(8080, "port to listen on; 0: any free port", ge=0, le=65_535)
    workers: int = setting(1, "server processes", ge=1)
    name: str | None = setting(None, "model name in requests (default: the last part of MODEL)")
    index: Path | None = setting(
        None, "index from st-paragram index, built with this model", metavar="FOLDER"
    )
    recall: float | None = setting(
        None,
        "for an approximate index: share of the nearest sentences that searches find; 1: exact "
        "(default: the index's recall)",
        gt=0,
        le=1,
        unused_with=_NO_INDEX,
    )
    index_memory: ByteSize = setting(
        "1GiB",
        "maximum memory, per process, for the vectors of exact searches; a larger index is read "
        "from disk by each search",
        metavar="SIZE",
        unused_with=_NO_INDEX,
    )
    index_writable: bool = setting(
        False,
        "let clients with the key add sentences to the index and delete them",
        unused_with=_NO_INDEX,
    )
    max_body: ByteSize = setting("4MiB", "maximum body of a request", metavar="SIZE")
    max_texts: int = setting(2048, "maximum texts per request; a pair has two", ge=1)
    max_characters: int = setting(20_000, "maximum characters per text", ge=1)
    truncate: bool = setting(
        False,
        "keep the beginning of longer texts, unless a request asks not to (default: refuse them)",
    )
    max_hits: int = setting(100, "maximum sentences per search query", ge=1, unused_with=_NO_INDEX)

    def __post_init__(self) -> None:
        """Refuse an index that anyone could change."""
        if self.index_writable and not self.key:
            raise SettingsError(
                "--index-writable needs a key, so that not everyone can change the index; give one"
            )


def _one_or_many(value: object) -> object:
    """Convert one text to a list, and OpenAI's token ids to texts."""
    if isinstance(value, str):
        return [value]
    if not (isinstance(value, list) and value and isinstance(value[0], int | list)):
        return value
    try:
        import tiktoken

        cache = os.environ.get("TIKTOKEN_CACHE_DIR") or f"{tempfile.gettempdir()}/data-gym-cache"
        if not Path(cache, CACHED_AS).is_file():  # tiktoken would download it
            raise ImportError
        decode = tiktoken.get_encoding(VOCABULARY).decode
        lists: Any = [value] if isinstance(value[0], int) else value
        return [decode(ids) for ids in lists]
    except (ImportError, KeyError, OverflowError, TypeError):
        raise ValueError(
            f"token ids must be of {VOCABULARY}, and the server needs tiktoken with this"
            " vocabulary; send texts (LangChain: check_embedding_ctx_length=False)"
        ) from None


def _default_for_null(value: object) -> object:
    if value is None:
        raise PydanticUseDefault
    return value


# null is as good as no field: some clients send all fields
NULLABLE = BeforeValidator(_default_for_null)
FAST = Field(fail_fast=True)  # validation of a list stops at the first error
Texts = Annotated[list[str], FAST]
OneOrMany = Annotated[list[str], FAST, BeforeValidator(_one_or_many)]
Document = Annotated[
    str, BeforeValidator(lambda value: value.get("text") if isinstance(value, dict) else value)
]
Right = Annotated[Literal["Right", "right"], NULLABLE]  # truncate long texts at the end
Flag = Annotated[bool, NULLABLE]
Number = Annotated[int, Field(ge=1, lt=2**31)]


class Body(BaseModel):
    """The body of a request."""

    # unknown fields are ignored: clients send some
    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, protected_namespaces=())
    model: str | None = None


class Long(Body):
    """Texts that may be too long."""

    truncate: bool | None = None  # None: as the server's option says
    truncation_direction: Right = "Right"


class Options(Long):
    """Options of texts to embed."""

    prompt_name: str | None = None


class Embeddings(Options):
    """OpenAI's request for embeddings, plus `input_type` for models with towers."""

    input: OneOrMany
    encoding_format: Annotated[Literal["float", "base64"], NULLABLE] = "float"
    dimensions: Number | None = None
    input_type: Annotated[Literal["sentence", "query", "document"], NULLABLE] = "sentence"


class Embed(Options):
    """Text-embeddings-inference's request for embeddings."""

    inputs: OneOrMany
    normalize: Flag = True
    dimensions: Number | None = None


class Compared(BaseModel):
    """A text, and the texts that it is compared with."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)
    source_sentence: str
    sentences: Texts


class Similarity(Body):
    """Text-embeddings-inference's request for cosines of one text with others."""

    inputs: Compared
    parameters: Annotated[Options, NULLABLE] = Options()


class Tokenize(Body):
    """Text-embeddings-inference's request for tokens; no tokenizer here adds special tokens."""

    inputs: OneOrMany
    prompt_name: str | None = None


class Rerank(Long):
    """A request for a ranking.

    `documents` are as in Cohere's and Jina's APIs, `texts` as in text-embeddings-inference.
    """

    query: str
    documents: Annotated[list[Document], FAST] | None = None
    top_n: Number | None = None
    return_documents: Flag = False
    texts: Texts | None = None
    raw_scores: Flag = False
    return_text: Flag = False


class Score(Body):
    """Pairs of texts."""

    pairs: Annotated[list[tuple[str, str]], FAST]


class Search(Body):
    """Queries to the index, hits per query, minimum cosine, and a condition on fields.

    `hybrid`: also find sentences that share words with a query.
    """

    queries: Texts
    k: Number | None = None  # 10, or fewer if the server allows fewer
    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None
    where: str | None = None
    hybrid: Flag = False


class Add(Body):
    """Sentences, and fields for all of them or for each."""

    sentences: Texts
    metadata: dict[str, Any] | list[dict[str, Any]] | None = None


class Delete(Body):
    """A selection of sentences to delete, in one of three ways."""

    where: str | None = None
    sentences: Texts | None = None
    lines: Annotated[list[Number], FAST] | None = None
