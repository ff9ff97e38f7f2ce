"""Text to ids: tokenizers, what they have in common, and their conversion to the `tokenizers` library."""
