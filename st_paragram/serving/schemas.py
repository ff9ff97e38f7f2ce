"""What requests look like. Unknown fields are ignored, as OpenAI's clients send several that have no meaning here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from st_paragram.serving.batching import Kind

_Number = Annotated[StrictInt, Field(ge=1, le=2**31 - 1)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class EmbeddingsRequest(_Request):
    """Of `POST /v1/embeddings`, as OpenAI defines it.

    `input_type` is ours: what the texts are, for models that embed questions and answers apart.
    """

    input: StrictStr | list[StrictStr]
    model: StrictStr
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: _Number | None = None
    input_type: Kind = Kind.SENTENCE

    @property
    def texts(self) -> list[str]:
        """The texts, also if there is one."""
        return [self.input] if isinstance(self.input, str) else self.input


class ScoreRequest(_Request):
    """Of `POST /score`: pairs of texts."""

    pairs: list[tuple[StrictStr, StrictStr]]
    model: StrictStr | None = None


class SearchRequest(_Request):
    """Of `POST /search`: queries to the index, how many sentences each is to find, and the least cosine."""

    queries: list[StrictStr]
    k: _Number = 10
    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None
    model: StrictStr | None = None


#: What is sent to each address.
REQUESTS: dict[str, type[BaseModel]] = {
    "/v1/embeddings": EmbeddingsRequest,
    "/score": ScoreRequest,
    "/search": SearchRequest,
}
