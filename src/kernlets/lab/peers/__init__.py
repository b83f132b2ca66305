"""Measurements beside peer libraries: contracts, runs and tables.

The benchmarks themselves are in the folder ``benchmarks`` of the repository.
"""
