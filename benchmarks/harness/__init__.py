"""What `benchmarks/speed.py` is built from: peers in separate processes, interleaved rounds, tables and plots."""
