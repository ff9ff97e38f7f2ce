"""The report of benchmark records, docs/results.md, and its pictures."""
