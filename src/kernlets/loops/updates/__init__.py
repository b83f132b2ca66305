"""Loops of atom updates: K-SVD sweeps, residuals and sums over codes."""
