"""Benchmarks and other long or timed runs. Each module is a script that prints a table; `make bench` runs them all."""
