"""Cleaning of parallel text: filters and repairs, each in a file of its own, put together by a list in YAML."""
