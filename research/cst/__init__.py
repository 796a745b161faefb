"""Reproduction and benchmark of CST."""
