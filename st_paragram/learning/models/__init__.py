"""Model directories: saving, loading, finding, and what stands in them."""
