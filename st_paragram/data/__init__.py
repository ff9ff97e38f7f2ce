"""Text in, vocabulary, pair store."""
