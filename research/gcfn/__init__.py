"""Reproduction and benchmark of GCFN."""
