"""Orthogonal matching pursuit: from products, from rows, of rows with gaps."""
