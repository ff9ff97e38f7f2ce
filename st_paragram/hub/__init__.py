"""Sharing models on the Hugging Face hub."""
