"""Cleaning of parallel text with filters and repairs, combined by a list in YAML."""
