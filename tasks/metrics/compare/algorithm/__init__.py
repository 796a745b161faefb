"""Folds of the comparison, performance of a model on held-out rows, and means over the folds: arrays in, arrays out."""
