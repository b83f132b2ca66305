"""Tests of the benchmarks and of what measures them."""
