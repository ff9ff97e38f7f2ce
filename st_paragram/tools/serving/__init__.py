"""An HTTP server for embeddings, scores and searches."""
