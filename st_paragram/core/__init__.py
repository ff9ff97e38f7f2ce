"""What everything else needs: the encoder, model directories, tokenizers, stores, settings, files.

Nothing here imports torch, sentence-transformers or transformers.
"""
