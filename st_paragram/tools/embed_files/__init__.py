"""Embed files of any size into a matrix, a Parquet table, or a folder of matrices."""

from st_paragram.tools.embed_files.embed import embed_files
from st_paragram.tools.embed_files.reader import StoredEmbeddings, read_embeddings
from st_paragram.tools.embed_files.rows import EmbeddingReport

__all__ = ["EmbeddingReport", "StoredEmbeddings", "embed_files", "read_embeddings"]
