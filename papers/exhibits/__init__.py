"""One file per paper: grids, published numbers, known deviations; no algorithm."""
