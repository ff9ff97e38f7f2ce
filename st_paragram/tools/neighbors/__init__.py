"""Nearest neighbors of embeddings, exactly or through a faiss index, in memory or from disk."""
