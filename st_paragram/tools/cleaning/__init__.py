"""Cleaning of parallel text: filters and repairs, each in a separate file, put together by a list in YAML."""
