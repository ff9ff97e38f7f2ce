"""What `benchmarks/speed.py` is made of: peers in processes of their own, interleaved rounds, tables and plots."""
