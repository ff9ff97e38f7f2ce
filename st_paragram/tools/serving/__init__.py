"""An HTTP server of embeddings, scores and searches."""
