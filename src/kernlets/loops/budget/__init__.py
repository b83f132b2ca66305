"""Training of a dictionary on a budget, sample by sample."""
