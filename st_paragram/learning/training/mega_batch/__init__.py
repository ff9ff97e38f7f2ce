"""Annealed mega-batches with mined negatives (P-SP, EMNLP 2022)."""
