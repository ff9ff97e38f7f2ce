"""The report of benchmark records, benchmarks/records/2026-11/results.md, and its pictures."""
