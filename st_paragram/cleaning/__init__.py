"""Cleaning of parallel text: named filters, one idea a file, put together by a list in YAML."""
