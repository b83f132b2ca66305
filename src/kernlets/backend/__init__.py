"""Which arrays, which loops, where the rows are. Nothing here knows an algorithm."""
