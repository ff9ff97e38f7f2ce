"""Parts shared by the benchmarks: measured processes, texts, tables."""
