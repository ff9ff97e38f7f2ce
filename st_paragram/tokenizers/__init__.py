"""Text to ids: tokenizers, what they share, and their conversion to the tokenizers library."""
