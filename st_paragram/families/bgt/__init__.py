"""BGT: a bilingual generative transformer (EMNLP 2020)."""
