"""Encoding without torch: reading model directories, tables of embeddings, and the encoder.

Nothing here, and nothing that these modules import, imports torch, sentence-transformers or
transformers.
"""
