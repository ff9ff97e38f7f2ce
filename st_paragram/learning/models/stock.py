"""Pipelines in model directories, see `pipeline_files`."""

from st_paragram.learning.models.pipeline_files import read, write

__all__ = ["read", "write"]
