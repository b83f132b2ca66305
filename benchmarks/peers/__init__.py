"""Measurements beside peer libraries: contracts, runs and tables."""
