"""Timings, measured and printed, never asserted: `python -m benchmarks`."""
