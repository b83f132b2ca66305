"""Measured runs of the library: what takes how long, and against which floor."""
