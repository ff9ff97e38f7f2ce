"""P-SP (EMNLP 2022): the mean of sentencepiece embeddings, trained with mined negatives."""
