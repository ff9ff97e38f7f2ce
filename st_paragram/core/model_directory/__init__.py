"""Model directories: their configuration, files, records and names."""
