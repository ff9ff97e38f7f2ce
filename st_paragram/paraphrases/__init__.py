"""Filters for paraphrases as ParaNMT has them, and paraphrases made of bitext."""
