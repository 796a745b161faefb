"""Benchmarks of the product that belong to no single method."""
