"""Side-by-side benchmarks: each figure with its peer in the same run. Absolute times are noise on a shared machine."""
