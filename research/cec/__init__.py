"""Reproduction and benchmark of CEC."""
