"""Reproduction and benchmark of FGCE."""
