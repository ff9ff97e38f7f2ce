"""Encode files of any size: one text to a matrix on disk, or a collection of texts to a folder of shards."""

from st_paragram.tools.embed_files.collection import CollectionReport, embed_collection
from st_paragram.tools.embed_files.one_file import EncodingReport, embed_file
from st_paragram.tools.embed_files.reader import StoredEmbeddings, read_embeddings
from st_paragram.tools.embed_files.settings import CollectionSettings, RowSettings

__all__ = [
    "CollectionReport",
    "CollectionSettings",
    "EncodingReport",
    "RowSettings",
    "StoredEmbeddings",
    "embed_collection",
    "embed_file",
    "read_embeddings",
]
