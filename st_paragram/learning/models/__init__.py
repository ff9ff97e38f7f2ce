"""Model directories: saving, loading, finding, and their content."""
