"""Loops of kernels and feature maps: distances, alignments, transforms."""
