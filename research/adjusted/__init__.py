"""Textbook regressions and benchmarks of adjusted disparities."""
