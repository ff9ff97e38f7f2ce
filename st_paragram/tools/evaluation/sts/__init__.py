"""STS 2012-2017, the STS Benchmark and Hard STS: files, protocols, scores, tables."""
