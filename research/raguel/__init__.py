"""Reproduction and benchmark of RAGUEL."""
