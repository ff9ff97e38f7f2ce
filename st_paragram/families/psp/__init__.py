"""P-SP: the mean of sentencepiece embeddings, trained with a margin loss and mined negatives (EMNLP
2022).
"""
