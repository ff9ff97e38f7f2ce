"""Modules of a SentenceTransformer, one per file."""
