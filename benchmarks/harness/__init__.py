"""What the benchmarks share: measured processes, texts, tables."""
