"""The texts of documents."""

from datatrove.data import Document

from st_paragram.errors import TextError


def text_of(document: Document, key: str | None) -> str:
    """Return the text of a document, or the text with a name in its metadata."""
    text = document.metadata.get(key) if key else document.text
    if not isinstance(text, str):
        keys = ", ".join(document.metadata) or "nothing"
        raise TextError(
            f"document {document.id}: no text {key!r} in its metadata (it has {keys}); check"
            " the key"
        )
    return text
