"""Modules of a SentenceTransformer: one a file."""
