"""Arrays, loops, and where rows are stored. Nothing here depends on an algorithm."""
