"""Request schemas. Unknown fields are ignored: clients of all these APIs send several that have no meaning here."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from st_paragram.tools.serving.batching import Kind

_Number = Annotated[StrictInt, Field(ge=1, le=2**31 - 1)]
# A list ends at its first error: millions of them would fill the memory.
_Texts = Annotated[list[StrictStr], Field(fail_fast=True)]
_Tokens = Annotated[list[Annotated[StrictInt, Field(ge=0, le=2**31 - 1)]], Field(fail_fast=True)]
_TokenLists = Annotated[list[_Tokens], Field(fail_fast=True)]


class RequestSchema(BaseModel):
    """What all requests have in common.

    Attributes:
        texts_field: the field that holds the texts; it tells the forms of one address apart.
    """

    model_config = ConfigDict(extra="ignore", protected_namespaces=())
    texts_field: ClassVar[str]


class EmbeddingsRequest(RequestSchema):
    """`POST /v1/embeddings`, as OpenAI defines it.

    `input_type` is an addition: what the texts are, for models that embed questions and answers differently.
    """

    texts_field = "input"
    input: StrictStr | _Texts | _Tokens | _TokenLists
    model: StrictStr
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: _Number | None = None
    input_type: Kind = Kind.SENTENCE


class EmbedRequest(RequestSchema):
    """`POST /embed`, as text-embeddings-inference defines it."""

    texts_field = "inputs"
    inputs: StrictStr | _Texts
    normalize: StrictBool = True
    truncate: StrictBool | None = False
    truncation_direction: Literal["Left", "Right", "left", "right"] = "Right"
    prompt_name: StrictStr | None = None
    dimensions: _Number | None = None


class Document(BaseModel):
    """A document as an object; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")
    text: StrictStr


class RerankRequest(RequestSchema):
    """`POST /v1/rerank`, as Cohere and Jina define it."""

    texts_field = "documents"
    query: StrictStr
    documents: Annotated[list[StrictStr | Document], Field(fail_fast=True)]
    top_n: _Number | None = None
    return_documents: StrictBool | None = False
    model: StrictStr | None = None


class RerankTextsRequest(RequestSchema):
    """`POST /rerank`, as text-embeddings-inference defines it."""

    texts_field = "texts"
    query: StrictStr
    texts: _Texts
    raw_scores: StrictBool = False
    return_text: StrictBool = False
    truncate: StrictBool | None = False
    truncation_direction: Literal["Left", "Right", "left", "right"] = "Right"


class ScoreRequest(RequestSchema):
    """`POST /score`: pairs of texts."""

    texts_field = "pairs"
    pairs: Annotated[list[tuple[StrictStr, StrictStr]], Field(fail_fast=True)]
    model: StrictStr | None = None


class SearchRequest(RequestSchema):
    """`POST /search`: queries to the index, hits per query, and the lowest cosine of a hit."""

    texts_field = "queries"
    queries: _Texts
    k: _Number = 10
    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None
    model: StrictStr | None = None
